"""A bounded number of slots with fair sharing: each holder has its own limit, and the queues are served round-robin."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

_NOBODY = object()


class QueueFull(Exception):  # noqa: N818  named for what happened
    """The queue is full; nothing was done."""


class FairSlots:
    def __init__(self, total: int, *, per_holder: int, waiting: int) -> None:
        self._free = total
        self._per_holder = per_holder
        self._most_waiting = waiting
        self._taken: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def slot(self, holder: Hashable) -> AsyncIterator[None]:
        """Raises ``QueueFull`` when too many calls of this holder are waiting."""
        await self._take(holder)
        try:
            yield
        finally:
            self._release(holder)

    async def _take(self, holder: Hashable) -> None:
        queue = self._waiting.setdefault(holder, deque())
        if len(queue) >= self._most_waiting:
            raise QueueFull("too many calls of this holder are waiting")
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release(holder)
            else:
                self._leave_queue(holder, turn)
            raise

    def _release(self, holder: Hashable) -> None:
        self._free += 1
        self._taken[holder] -= 1
        if not self._taken[holder]:
            del self._taken[holder]
        self._serve()

    def _serve(self) -> None:
        while self._free and (holder := self._next()) is not _NOBODY:
            turn = self._waiting[holder].popleft()
            self._waiting.move_to_end(holder)
            if not self._waiting[holder]:
                del self._waiting[holder]
            if turn.done():  # cancelled meanwhile
                continue
            self._free -= 1
            self._taken[holder] += 1
            turn.set_result(None)

    def _next(self) -> Hashable:
        return next((holder for holder in self._waiting if self._taken[holder] < self._per_holder), _NOBODY)

    def _leave_queue(self, holder: Hashable, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(holder, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._waiting.pop(holder, None)
