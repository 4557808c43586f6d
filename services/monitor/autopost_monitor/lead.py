"""One leader for each round: among any number of replicas one does it, and a dead one is replaced within a lease.

The lease lies in the database and is renewed while the work runs. Work whose lease cannot be kept is cancelled before
anybody else may begin it; what it has committed by then must be safe to do again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from autopost_runtime.cancelling import end
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable

LEASE = timedelta(seconds=8)
RENEW = 0.3
"""Of the lease."""

SURE = 0.9
"""For how much of its lease a holder may believe in it; the rest is for letting go of the work."""


class Rounds(Protocol):
    async def take_round(self, name: str, holder: UUID, lease: timedelta, every: timedelta) -> bool: ...
    async def end_round(self, name: str, holder: UUID) -> None: ...


class Turns:
    """The turns of one replica. ``holder`` is fresh for each process: a restarted one is another."""

    def __init__(self, gateway: Rounds, holder: UUID, lease: timedelta = LEASE) -> None:
        self.holder = holder
        self._gateway = gateway
        self._lease = lease

    async def round(self, name: str, every: timedelta, work: Callable[[], Awaitable[object]]) -> bool:
        """Whether it was ours to do, and is done. A round that failed stays open, to be done again soon."""
        deadline = self._sure_from(_now())
        if not await self._gateway.take_round(name, self.holder, self._lease, every):
            return False
        if not await self._while_held(name, every, work, deadline):
            get_logger().warning("round.lost", round=name)
            return False
        await self._gateway.end_round(name, self.holder)
        return True

    async def _while_held(
        self, name: str, every: timedelta, work: Callable[[], Awaitable[object]], deadline: float
    ) -> bool:
        """``False`` when the turn was lost before the work had ended."""
        working: asyncio.Task[Any] = asyncio.ensure_future(_awaited(work))
        renewing = asyncio.create_task(self._renew(name, every, deadline))
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            await (working if working.done() else renewing)
            return working.done()
        finally:
            await end([working, renewing], within=self._lease)

    async def _renew(self, name: str, every: timedelta, deadline: float) -> None:
        """Ends when the turn is lost: refused, or not renewed until the lease that we know of ran out."""
        while _now() < deadline:
            await asyncio.sleep(min(RENEW * self._lease.total_seconds(), deadline - _now()))
            asked = _now()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    held = await self._ask(name, every)
                    if held is False:
                        return
                    if held:
                        deadline = self._sure_from(asked)

    async def _ask(self, name: str, every: timedelta) -> bool | None:
        """``None`` when the database did not say."""
        try:
            return await self._gateway.take_round(name, self.holder, self._lease, every)
        except Exception as exc:
            if not is_retryable(exc):
                raise
            return None

    def _sure_from(self, asked: float) -> float:
        return asked + SURE * self._lease.total_seconds()


async def _awaited(work: Callable[[], Awaitable[object]]) -> object:
    return await work()


def _now() -> float:
    return asyncio.get_running_loop().time()
