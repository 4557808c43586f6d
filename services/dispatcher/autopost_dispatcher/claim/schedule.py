"""When to claim in which workspace: at once after a wakeup, or when a slot or a retry is due.

Workspaces take turns: after a claim a workspace goes to the end of the queue. One claimer at a time works on a
workspace; a wakeup during that is kept until it is done.
"""

import asyncio
import heapq
import time
from collections import OrderedDict
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId


class ClaimSchedule:
    def __init__(self) -> None:
        self._ready: OrderedDict[WorkspaceId, None] = OrderedDict()
        self._timers: list[tuple[float, WorkspaceId]] = []
        self._due_at: dict[WorkspaceId, float] = {}
        self._busy: set[WorkspaceId] = set()
        self._unchecked: set[WorkspaceId] = set()
        self._changed = asyncio.Event()
        self._closed = False

    def wake(self, workspace: WorkspaceId) -> None:
        self._unchecked.discard(workspace)
        self._ready.setdefault(workspace)
        self._changed.set()

    def wake_if_due(self, workspace: WorkspaceId) -> None:
        """Something may be due there. The claimer checks first, which is cheaper than a claim."""
        if workspace not in self._ready:
            self._ready[workspace] = None
            self._unchecked.add(workspace)
            self._changed.set()

    def wake_in(self, workspace: WorkspaceId, delay: timedelta) -> None:
        """The earliest time counts; the claim at that time finds the next one."""
        at = time.monotonic() + delay.total_seconds()
        if at < self._due_at.get(workspace, float("inf")):
            self._due_at[workspace] = at
            heapq.heappush(self._timers, (at, workspace))
            self._changed.set()

    def close(self) -> None:
        """End the schedule: ``next`` returns ``None`` from now on."""
        self._closed = True
        self._changed.set()

    async def next(self) -> WorkspaceId | None:
        """The next workspace to claim in; ``done`` must follow. ``None`` once the schedule is closed."""
        while not self._closed:
            self._changed.clear()
            self._move_due()
            for workspace in self._ready:
                if workspace not in self._busy:
                    del self._ready[workspace]
                    self._busy.add(workspace)
                    return workspace
            await self._sleep()
        self._changed.set()  # wake the next waiting claimer
        return None

    def take_unchecked(self, workspace: WorkspaceId) -> bool:
        """Whether the turn comes from ``wake_if_due`` only. Resets the mark, so call it once per turn."""
        unchecked = workspace in self._unchecked
        self._unchecked.discard(workspace)
        return unchecked

    def done(self, workspace: WorkspaceId) -> None:
        self._busy.discard(workspace)
        if workspace in self._ready:
            self._changed.set()

    def _move_due(self) -> None:
        """Move workspaces whose timer has expired into the queue."""
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            at, workspace = heapq.heappop(self._timers)
            if self._due_at.get(workspace) == at:
                del self._due_at[workspace]
                self._unchecked.discard(workspace)
                self._ready.setdefault(workspace)

    async def _sleep(self) -> None:
        wait = self._timers[0][0] - time.monotonic() if self._timers else None
        try:
            async with asyncio.timeout(None if wait is None else max(wait, 0)):
                await self._changed.wait()
        except TimeoutError:
            return
