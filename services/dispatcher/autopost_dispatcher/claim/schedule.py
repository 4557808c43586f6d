"""When to claim in which workspace: at once after a wakeup, or when a slot or a retry is due.

Workspaces take turns: after a claim a workspace goes to the end of the queue, so the first in the queue is the one that
has waited longest. One claimer at a time works on a workspace; a wakeup during that is kept until it is done. All
timers are in one heap, and a workspace without one costs nothing.

A wakeup says that a post has come in. Those are in a queue of their own: a lone post must not wait for a large batch.
"""

import asyncio
import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import Enum, auto

from autopost_contracts.ids import WorkspaceId

SOON = 0.02
"""Seconds. A workspace that is looked at that soon anyway needs no look in between."""
FEW = 8
"""How many woken workspaces one claim has at most."""


class Serves(Enum):
    """What a claimer is there for."""

    ALL = auto()
    WOKEN = auto()
    """Where a post has just come in."""
    BACKLOG = auto()
    """Helps when more workspaces are ready than one claim takes."""


class ClaimSchedule:
    def __init__(self) -> None:
        self._ready: OrderedDict[WorkspaceId, None] = OrderedDict()
        self._woken: OrderedDict[WorkspaceId, None] = OrderedDict()
        self._queues = deque((self._ready, self._woken))
        """The one whose turn it is first."""
        self._timers: list[tuple[float, WorkspaceId]] = []
        self._due_at: dict[WorkspaceId, float] = {}
        self._busy: set[WorkspaceId] = set()
        self._taken: set[WorkspaceId] = set()
        """Since the last poll began."""
        self._unchecked: set[WorkspaceId] = set()
        self._changed = asyncio.Event()
        self._closed = False

    def wake(self, workspace: WorkspaceId) -> None:
        """A post has come in there."""
        if not self._is_due_soon(workspace):
            self._unchecked.discard(workspace)
            self._ready.pop(workspace, None)
            self._woken.setdefault(workspace)
            self._changed.set()

    def again(self, workspace: WorkspaceId) -> None:
        """More is due there, after those that wait already."""
        self._unchecked.discard(workspace)
        if workspace not in self._woken:
            self._ready.setdefault(workspace)
            self._changed.set()

    def wake_if_due(self, workspace: WorkspaceId) -> None:
        """Something may be due there. The claimer checks first, which is cheaper than a claim."""
        if workspace not in self._ready and workspace not in self._woken and not self._is_due_soon(workspace):
            self._ready[workspace] = None
            self._unchecked.add(workspace)
            self._changed.set()

    def wake_in(self, workspace: WorkspaceId, delay: timedelta) -> None:
        """The earliest time counts; the claim at that time finds the next one."""
        self.wake_after(workspace, delay.total_seconds())

    def poll_begins(self) -> None:
        self._taken = set(self._busy)

    def polled(self, workspace: WorkspaceId, delay: timedelta) -> None:
        """The poll found something to claim there. If a claim has begun since, that one knows better."""
        if workspace not in self._taken:
            self.wake_in(workspace, delay)

    def wake_after(self, workspace: WorkspaceId, seconds: float) -> None:
        at = time.monotonic() + seconds
        if at < self._due_at.get(workspace, float("inf")):
            self._due_at[workspace] = at
            heapq.heappush(self._timers, (at, workspace))
            if self._timers[0][1] is workspace:
                self._changed.set()

    def close(self) -> None:
        """End the schedule: ``next`` returns ``None`` from now on."""
        self._closed = True
        self._changed.set()

    async def next(self) -> WorkspaceId | None:
        """The next workspace to claim in; ``done`` must follow. ``None`` once the schedule is closed."""
        found = await self.next_batch(1)
        return found[0] if found else None

    async def next_batch(self, limit: int, serves: Serves = Serves.ALL) -> list[WorkspaceId]:
        """The next workspaces to claim in; ``done`` must follow for each. Empty once the schedule is closed.

        Those that were woken come in batches of their own, every second one of a claimer that takes both.
        """
        while not self._closed:
            self._changed.clear()
            self._move_due()
            for queue in self._queues_for(serves, limit):
                if found := list(self._take(queue, min(limit, FEW) if queue is self._woken else limit)):
                    self._queues.rotate(serves is Serves.ALL)
                    return found
            await self._sleep()
        self._changed.set()  # wake the next waiting claimer
        return []

    def ready(self) -> int:
        self._move_due()
        return len(self._ready)

    def take_unchecked(self, workspace: WorkspaceId) -> bool:
        """Whether the turn comes from ``wake_if_due`` only. Resets the mark, so call it once per turn."""
        unchecked = workspace in self._unchecked
        self._unchecked.discard(workspace)
        return unchecked

    def done(self, workspace: WorkspaceId) -> None:
        self._busy.discard(workspace)
        if workspace in self._ready or workspace in self._woken:
            self._changed.set()

    def _queues_for(self, serves: Serves, limit: int) -> Iterable[OrderedDict[WorkspaceId, None]]:
        match serves:
            case Serves.ALL:
                return tuple(self._queues)
            case Serves.WOKEN:
                return (self._woken,)
            case Serves.BACKLOG:
                return (self._ready,) if len(self._ready) >= limit else ()

    def _take(self, queue: OrderedDict[WorkspaceId, None], limit: int) -> Iterator[WorkspaceId]:
        free = (workspace for workspace in list(queue) if workspace not in self._busy)
        for _, workspace in zip(range(limit), free, strict=False):
            del queue[workspace]
            self._busy.add(workspace)
            self._taken.add(workspace)
            yield workspace

    def _is_due_soon(self, workspace: WorkspaceId) -> bool:
        return self._due_at.get(workspace, float("inf")) - time.monotonic() < SOON

    def _move_due(self) -> None:
        """Move workspaces whose timer has expired into the queue."""
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            at, workspace = heapq.heappop(self._timers)
            if self._due_at.get(workspace) == at:
                del self._due_at[workspace]
                self._unchecked.discard(workspace)
                if workspace not in self._woken:
                    self._ready.setdefault(workspace)

    async def _sleep(self) -> None:
        wait = self._timers[0][0] - time.monotonic() if self._timers else None
        try:
            async with asyncio.timeout(None if wait is None else max(wait, 0)):
                await self._changed.wait()
        except TimeoutError:
            return
