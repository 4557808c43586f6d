"""Leave a workspace to the replica that serves it, while that one is in time.

Two replicas that look for each slot at the same moment both pay for it, and one of them in vain. So the one that came
too late looks a little later for the next slots. It finds that they are taken, which costs little, or takes them: the
other replica has ended, or has too much to do. Then it is the one that serves, and the other one stands back.
"""

import time
from math import inf

from autopost_contracts.ids import WorkspaceId

BEHIND = 0.02
"""Seconds. A slot may be older than that when it is claimed, so none is lost."""


class OtherReplicas:
    def __init__(self) -> None:
        self._due: dict[WorkspaceId, float] = {}
        """When the next slot is, as far as the last look could tell."""
        self._stands_back: set[WorkspaceId] = set()

    def serves(self, workspace: WorkspaceId, due_in: float) -> None:
        """This replica does."""
        self._stands_back.discard(workspace)
        self._due[workspace] = time.monotonic() + due_in

    def was_before(self, workspace: WorkspaceId, due_in: float) -> float:
        """The slot was taken when this replica looked for it. In how many seconds to look again."""
        now = time.monotonic()
        if now >= self._due.get(workspace, inf):
            self._stands_back.add(workspace)
        self._due[workspace] = now + due_in
        return due_in + BEHIND if workspace in self._stands_back else due_in

    def forget(self, workspace: WorkspaceId) -> None:
        """Nothing waits there."""
        self._due.pop(workspace, None)
        self._stands_back.discard(workspace)
