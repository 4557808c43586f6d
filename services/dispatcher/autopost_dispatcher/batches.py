"""Calls to the database that several deliveries make at once, as one call.

The first goes out at once; those that come while one is under way go together with the next. So a lone delivery waits
for nobody, and a thousand tenants do not pay for a transaction each.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from autopost_runtime.postgres.pool import is_retryable
from msgspec import Struct

MOST = 100

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Asked(Struct, Generic[Request, Answer], eq=False):
    request: Request
    answer: "asyncio.Future[Answer]"


class Batches(Generic[Request, Answer]):
    def __init__(
        self, call: Callable[[list[Request]], Awaitable[list[Answer]]], key: Callable[[Request], Hashable]
    ) -> None:
        """``key``: of two requests with the same one, the second goes with a later call."""
        self._call = call
        self._key = key
        self._waiting: list[Asked[Request, Answer]] = []
        self._running: asyncio.Task[None] | None = None

    async def ask(self, request: Request) -> Answer:
        asked = Asked[Request, Answer](request, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
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
            if key in batch or len(batch) == MOST:
                left.append(asked)
            else:
                batch[key] = asked
        self._waiting = left
        return list(batch.values())

    async def _answer(self, batch: list[Asked[Request, Answer]]) -> None:
        """An error that is not retryable may be the fault of one: then each is asked alone."""
        try:
            answers = await self._call([asked.request for asked in batch]) if batch else []
        except Exception as exc:
            if len(batch) > 1 and not is_retryable(exc):
                for asked in batch:
                    await self._answer([asked])
                return
            for asked in batch:
                if not asked.answer.done():
                    asked.answer.set_exception(exc)
            return
        for asked, answer in zip(batch, answers, strict=True):
            if not asked.answer.done():
                asked.answer.set_result(answer)
