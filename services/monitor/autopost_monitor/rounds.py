"""Periodic work: a round, a pause, again; an unreachable database ends a round, not the service."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from autopost_runtime.cancelling import end
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable
from autopost_runtime.service import Service

from autopost_monitor.lead import Turns

ASK = timedelta(seconds=3)
"""How often a replica asks for its turn, however rare the round: so long a dead leader's lease goes unnoticed."""

LAST = timedelta(seconds=1)

Round = Callable[[], Awaitable[object]]


class Rounds:
    """``lead``: once among all replicas. ``everywhere``: on each of them, for what only this process can know."""

    def __init__(self, service: Service, turns: Turns) -> None:
        self._service = service
        self._turns = turns
        self._tasks: list[asyncio.Task[Any]] = []

    def lead(self, name: str, interval: timedelta, round_: Round) -> None:
        async def turn() -> None:
            await self._turns.round(name, interval, round_)

        self._spawn(name, min(interval, ASK), turn)

    def everywhere(self, name: str, interval: timedelta, round_: Round) -> None:
        self._spawn(name, interval, round_)

    async def finish(self) -> None:
        """Once the service is stopping, while there still is a database: what has ended gives its turn back."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST.total_seconds())
        await end(self._tasks)

    def _spawn(self, name: str, interval: timedelta, round_: Round) -> None:
        self._tasks.append(self._service.spawn(every(interval, name, round_, self._service), name))


async def every(interval: timedelta, name: str, round_: Round, service: Service) -> None:
    """The first round at once."""
    while not service.stopping.is_set():
        try:
            await round_()
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("round.failed", round=name, error=type(exc).__name__)
        await service.sleep(interval)
