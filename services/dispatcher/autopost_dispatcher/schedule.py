"""When to look into which workspace: at once after a wakeup, exactly when a slot or a retry is due.

Workspaces take turns: one that was just served goes to the end of the line. A workspace is worked on by one
claimer at a time; a wakeup that comes meanwhile is kept for afterwards.
"""

import asyncio
import heapq
import time
from collections import OrderedDict
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId


class Schedule:
    def __init__(self) -> None:
        self._line: OrderedDict[WorkspaceId, None] = OrderedDict()
        self._timers: list[tuple[float, WorkspaceId]] = []
        self._alarm: dict[WorkspaceId, float] = {}
        self._busy: set[WorkspaceId] = set()
        self._doubtful: set[WorkspaceId] = set()
        self._changed = asyncio.Event()
        self._closed = False

    def wake(self, workspace: WorkspaceId) -> None:
        self._doubtful.discard(workspace)
        self._line.setdefault(workspace)
        self._changed.set()

    def ask(self, workspace: WorkspaceId) -> None:
        """Something may be due there by now: whoever has the turn finds out first, which costs less than a claim."""
        if workspace not in self._line:
            self._line[workspace] = None
            self._doubtful.add(workspace)
            self._changed.set()

    def wake_in(self, workspace: WorkspaceId, delay: timedelta) -> None:
        """The earliest alarm counts; a later one is covered by the claim that the earlier one leads to."""
        at = time.monotonic() + delay.total_seconds()
        if at < self._alarm.get(workspace, float("inf")):
            self._alarm[workspace] = at
            heapq.heappush(self._timers, (at, workspace))
            self._changed.set()

    def close(self) -> None:
        """No more turns: whoever asks for the next one is told to go home."""
        self._closed = True
        self._changed.set()

    async def next(self) -> WorkspaceId | None:
        """The next workspace to claim in; ``done`` must follow. ``None`` once the schedule is closed."""
        while not self._closed:
            self._changed.clear()
            self._ring()
            for workspace in self._line:
                if workspace not in self._busy:
                    del self._line[workspace]
                    self._busy.add(workspace)
                    return workspace
            await self._sleep()
        self._changed.set()  # for the next one who waits
        return None

    def is_doubtful(self, workspace: WorkspaceId) -> bool:
        """Whether the turn that was given comes from ``ask`` alone; to be asked once for a turn."""
        doubtful = workspace in self._doubtful
        self._doubtful.discard(workspace)
        return doubtful

    def done(self, workspace: WorkspaceId) -> None:
        self._busy.discard(workspace)
        if workspace in self._line:
            self._changed.set()

    def _ring(self) -> None:
        """Moves what is due from the timers into the line."""
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            at, workspace = heapq.heappop(self._timers)
            if self._alarm.get(workspace) == at:
                del self._alarm[workspace]
                self._doubtful.discard(workspace)
                self._line.setdefault(workspace)

    async def _sleep(self) -> None:
        wait = self._timers[0][0] - time.monotonic() if self._timers else None
        try:
            async with asyncio.timeout(None if wait is None else max(wait, 0)):
                await self._changed.wait()
        except TimeoutError:
            return
