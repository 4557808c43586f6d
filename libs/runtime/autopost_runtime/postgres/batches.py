"""Calls to the database that several callers make at once, as one call.

The first goes out at once; those that come while one is under way go together with the next. So a lone delivery waits
for nobody, and a thousand tenants do not pay for a transaction each. A call fails because of one request, or because of
one row that another transaction holds: then each is asked alone, and the next call does not wait for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from autopost_runtime.lifecycle.fair_slots import FairSlots
from autopost_runtime.postgres.pool import is_away

MOST = 100
ALONE = 3
"""Connections for requests that are asked alone; one per holder, so that a row that is held blocks its tenant only."""

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Asked(Struct, Generic[Request, Answer], eq=False):
    request: Request
    answer: "asyncio.Future[Answer]"


class Batches(Generic[Request, Answer]):
    def __init__(
        self,
        call: Callable[[list[Request]], Awaitable[list[Answer]]],
        key: Callable[[Request], Hashable],
        holder: Callable[[Request], Hashable],
        most: int = MOST,
    ) -> None:
        """``key``: of two requests with the same one, the second goes with a later call. ``holder``: its tenant.
        ``most``: requests of one call."""
        self._call = call
        self._key = key
        self._holder = holder
        self._most = most
        self._waiting: list[Asked[Request, Answer]] = []
        self._running: asyncio.Task[None] | None = None
        self._slots = FairSlots(ALONE, per_holder=1, waiting=MOST * MOST)
        self._alone: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def ask(self, request: Request) -> Answer:
        asked = Asked[Request, Answer](request, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await asked.answer

    async def ask_alone(self, request: Request) -> Answer:
        """For a request that has failed before: with others, it would make their call fail, too."""
        asked = Asked[Request, Answer](request, asyncio.get_running_loop().create_future())
        self._answer_alone([asked])
        return await asked.answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._answer(self._next())
        finally:
            self._running = None

    def _next(self) -> list[Asked[Request, Answer]]:
        batch: dict[Hashable, Asked[Request, Answer]] = {}
        left = []
        for asked in self._waiting:
            key = self._key(asked.request)
            if asked.answer.cancelled():
                continue
            if key in batch or len(batch) == self._most:
                left.append(asked)
            else:
                batch[key] = asked
        self._waiting = left
        return list(batch.values())

    async def _answer(self, batch: list[Asked[Request, Answer]]) -> None:
        """An error of the whole database is everybody's; any other may be the fault of one."""
        try:
            answers = await self._call([asked.request for asked in batch]) if batch else []
        except Exception as exc:
            if len(batch) > 1 and not is_away(exc):
                self._answer_alone(batch)
                return
            for asked in batch:
                if not asked.answer.done():
                    asked.answer.set_exception(exc)
            return
        for asked, answer in zip(batch, answers, strict=True):
            if not asked.answer.done():
                asked.answer.set_result(answer)

    def _answer_alone(self, batch: list[Asked[Request, Answer]]) -> None:
        for asked in batch:
            task = asyncio.create_task(self._answer_one(asked))
            self._alone.add(task)
            task.add_done_callback(self._alone.discard)

    async def _answer_one(self, asked: Asked[Request, Answer]) -> None:
        async with self._slots.slot(self._holder(asked.request)):
            if not asked.answer.done():
                await self._answer([asked])
