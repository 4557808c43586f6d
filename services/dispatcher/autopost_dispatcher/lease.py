"""How long a claim is ours. Calls are made only inside it; what takes longer is renewed meanwhile."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Protocol

from autopost_contracts.ids import DeliveryId, WorkspaceId
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable
from msgspec import Struct

from autopost_dispatcher.gateway import Claim


class Lease(Struct, eq=False):
    """As far as we know: counted from before the call that gave it, so never thought longer than it is."""

    until: float
    is_lost: bool = False
    """The database gave the claim to somebody else."""

    def left(self) -> float:
        return self.until - time.monotonic()


class Leased(Protocol):
    @property
    def claim(self) -> Claim: ...

    @property
    def lease(self) -> Lease: ...


class Leases(Protocol):
    async def renew_leases(
        self, workspace: WorkspaceId, claims: Sequence[Claim], lease: timedelta
    ) -> set[DeliveryId]: ...


class Renewal:
    """Renews what has been in hand for a sixth of its lease, looking twice as often: three quarters are always left."""

    def __init__(self, leases: Leases, lease: timedelta, flights: Callable[[], Iterable[Leased]]) -> None:
        self._leases = leases
        self._lease = lease
        self._flights = flights

    async def run(self) -> None:
        """Until cancelled, which is when nothing is in flight any more."""
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 12)
            await self.renew_old()

    async def renew_old(self) -> None:
        old: dict[WorkspaceId, list[Leased]] = defaultdict(list)
        for flight in self._flights():
            if not flight.lease.is_lost and flight.lease.left() < self._lease.total_seconds() * 5 / 6:
                old[flight.claim.workspace_id].append(flight)
        for workspace, flights in old.items():
            try:
                await self._renew(workspace, flights)
            except Exception as exc:
                if not is_retryable(exc):
                    raise
                get_logger().warning("leases.not_renewed", error=type(exc).__name__, deliveries=len(flights))

    async def _renew(self, workspace: WorkspaceId, flights: Sequence[Leased]) -> None:
        started = time.monotonic()
        ours = await self._leases.renew_leases(workspace, [flight.claim for flight in flights], self._lease)
        for flight in flights:
            if flight.claim.delivery_id in ours:
                flight.lease.until = started + self._lease.total_seconds()
            else:
                flight.lease.is_lost = True
