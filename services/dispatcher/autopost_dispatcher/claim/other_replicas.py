"""Leave a workspace to the replica that serves it, while that one is in time.

Two replicas that look for each slot at the same moment both pay for it, and one of them in vain. So the one that came
too late looks a little later for the next slots. It finds that they are taken, which costs little, or takes them: the
other replica has ended, or has too much to do. Then it is the one that serves, and the other one stands back.
"""

import time
from collections.abc import Callable
from math import inf

from autopost_contracts.ids import WorkspaceId

BEHIND = 0.02
"""Seconds. A slot may be older than that when it is claimed, so none is lost."""
FAR_BEHIND, AFTER = 0.15, 8
"""Seconds, after so many slots in a row that another one took, unless deliveries of this replica are under way there:
their later calls take slots too. When the other replica ends, a few slots are lost once."""


class OtherReplicas:
    def __init__(self, has_calls: Callable[[WorkspaceId], bool] = lambda _: True) -> None:
        """``has_calls``: whether deliveries of this replica are under way in that workspace."""
        self._has_calls = has_calls
        self._due: dict[WorkspaceId, float] = {}
        """When the next slot is, as far as the last look could tell."""
        self._lost: dict[WorkspaceId, int] = {}
        """How many slots in a row another replica has taken; without it this one does not stand back."""

    def serves(self, workspace: WorkspaceId, due_in: float) -> None:
        """This replica does."""
        self._lost.pop(workspace, None)
        self._due[workspace] = time.monotonic() + due_in

    def was_before(self, workspace: WorkspaceId, due_in: float) -> float:
        """The slot was taken when this replica looked for it. In how many seconds to look again."""
        now = time.monotonic()
        if now >= self._due.get(workspace, inf):
            self._lost[workspace] = self._lost.get(workspace, 0) + 1
        self._due[workspace] = now + due_in
        lost = self._lost.get(workspace, 0)
        if lost > AFTER and not self._has_calls(workspace):
            return due_in + FAR_BEHIND
        return due_in + BEHIND if lost else due_in

    def forget(self, workspace: WorkspaceId) -> None:
        """Nothing waits there."""
        self._due.pop(workspace, None)
        self._lost.pop(workspace, None)
