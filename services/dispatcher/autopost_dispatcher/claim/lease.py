"""The lease of a claim and its renewal. Calls to a platform are made only within the lease."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Protocol

from autopost_contracts.ids import DeliveryId, WorkspaceId
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.postgres.pool import is_away
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_dispatcher.gateway import Claim

not_renewed = metrics.counter("autopost_leases_not_renewed_total", "Leases that could not be renewed, by try.")


class Lease(Struct, eq=False):
    """Counted from before the call that granted it, so it is never overestimated."""

    until: float
    is_lost: bool = False
    """Another worker has the claim now."""

    def left(self) -> float:
        return self.until - time.monotonic()


class Leased(Protocol):
    @property
    def claim(self) -> Claim: ...

    @property
    def lease(self) -> Lease: ...


class LeaseRecords(Protocol):
    async def renew_leases(
        self, workspace: WorkspaceId, claims: Sequence[Claim], lease: timedelta
    ) -> set[DeliveryId]: ...


class LeaseRenewal:
    """Renews leases after a sixth of their time and checks twice as often, so three quarters are always left."""

    def __init__(self, leases: LeaseRecords, lease: timedelta, jobs: Callable[[], Iterable[Leased]]) -> None:
        self._leases = leases
        self._lease = lease
        self._jobs = jobs

    async def run(self) -> None:
        """Runs until it is cancelled, after the last delivery has ended."""
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 12)
            await self.renew_old()

    async def renew_old(self) -> None:
        old: dict[WorkspaceId, list[Leased]] = defaultdict(list)
        for job in self._jobs():
            if not job.lease.is_lost and job.lease.left() < self._lease.total_seconds() * 5 / 6:
                old[job.claim.workspace_id].append(job)
        for workspace, jobs in old.items():
            await self._renew_all(workspace, jobs)

    async def _renew_all(self, workspace: WorkspaceId, jobs: Sequence[Leased]) -> None:
        """In one call; one by one if that fails, so that one bad lease does not affect the others."""
        try:
            await self._renew(workspace, jobs)
        except Exception as exc:
            not_renewed.add(len(jobs))
            get_logger().warning("leases.not_renewed", error=error_name(exc), deliveries=len(jobs))
            if not is_away(exc) and len(jobs) > 1:
                for job in jobs:
                    await self._renew_all(workspace, [job])

    async def _renew(self, workspace: WorkspaceId, jobs: Sequence[Leased]) -> None:
        started = time.monotonic()
        ours = await self._leases.renew_leases(workspace, [job.claim for job in jobs], self._lease)
        for job in jobs:
            if job.claim.delivery_id in ours:
                job.lease.until = started + self._lease.total_seconds()
            else:
                job.lease.is_lost = True
