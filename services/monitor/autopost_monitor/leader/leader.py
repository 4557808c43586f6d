"""Elect a leader for each job: one of all replicas runs it, and a dead leader is replaced after its lease.

The lease is in the database and is renewed while the job runs. A job whose lease cannot be renewed is cancelled before
another replica may start it; what it has committed must be safe to repeat.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from autopost_runtime.lifecycle.cancelling import end
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry.logs import get_logger

LEASE = timedelta(seconds=8)
RENEW = 0.3
"""Fraction of the lease after which it is renewed."""

TRUSTED = 0.9
"""Fraction of the lease that a holder relies on; the rest is for cancelling the job."""


class LeaderLeases(Protocol):
    async def take_leader_lease(self, name: str, holder: UUID, lease: timedelta, every: timedelta) -> bool: ...
    async def end_leader_lease(self, name: str, holder: UUID) -> None: ...


class Leadership:
    """The leader leases of one replica. ``holder`` is new for each process, so a restart is another holder."""

    def __init__(self, gateway: LeaderLeases, holder: UUID, lease: timedelta = LEASE) -> None:
        self.holder = holder
        self._gateway = gateway
        self._lease = lease

    async def run_if_leader(self, name: str, every: timedelta, work: Callable[[], Awaitable[object]]) -> bool:
        """Whether this replica was the leader and finished the job. A failed job is retried soon."""
        deadline = self._sure_from(_now())
        if not await self._gateway.take_leader_lease(name, self.holder, self._lease, every):
            return False
        if not await self._while_held(name, every, work, deadline):
            get_logger().warning("job.lost", job=name)
            return False
        await self._gateway.end_leader_lease(name, self.holder)
        return True

    async def _while_held(
        self, name: str, every: timedelta, work: Callable[[], Awaitable[object]], deadline: float
    ) -> bool:
        """``False`` when the lease was lost before the job ended."""
        working: asyncio.Task[Any] = asyncio.ensure_future(_awaited(work))
        renewing = asyncio.create_task(self._renew(name, every, deadline))
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            await (working if working.done() else renewing)
            return working.done()
        finally:
            await end([working, renewing], within=self._lease)

    async def _renew(self, name: str, every: timedelta, deadline: float) -> None:
        """Returns when the lease is lost: refused, or not renewed in time."""
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
        """``None`` when the database did not answer."""
        try:
            return await self._gateway.take_leader_lease(name, self.holder, self._lease, every)
        except Exception as exc:
            if not is_retryable(exc):
                raise
            return None

    def _sure_from(self, asked: float) -> float:
        return asked + TRUSTED * self._lease.total_seconds()


async def _awaited(work: Callable[[], Awaitable[object]]) -> object:
    return await work()


def _now() -> float:
    return asyncio.get_running_loop().time()
