"""Claim due deliveries, workspace by workspace, as fast as they can be sent."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import random

from autopost_contracts.ids import ClaimToken, RunId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.set_aside import SetAside
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.errors import is_of_the_database
from autopost_runtime.postgres.pool import is_away, may_have_committed
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct
from opentelemetry.trace import Link

from autopost_dispatcher.claim.lease import Lease
from autopost_dispatcher.claim.schedule import ClaimSchedule
from autopost_dispatcher.gateway import NEVER, Claim, Claimed, Gateway

BLOCKED_PAUSE = timedelta(seconds=5)
"""Pause between claims in a workspace whose outcomes cannot be committed."""
CLOCK_MARGIN = timedelta(seconds=5)
"""Margin for the age of a claim whose answer was lost."""
EMPTY_CLAIM_PAUSE = timedelta(milliseconds=10)
"""Pause after an empty claim in a due workspace: another replica is claiming there."""

claim_seconds = metrics.histogram("autopost_claim_seconds", "How long claim_deliveries took.")


class SendJob(Struct, eq=False):
    """A claim to be sent, with its slot by our clock, its lease, and the span that claimed it."""

    claim: Claim
    slot_at: float
    lease: Lease
    link: Link | None
    asked_at: float = 0.0
    """When the claim was asked for, by our clock."""
    in_doubt: bool = False
    """A call was made that may have posted a message, and its result is not recorded yet."""
    is_trial: bool = False
    """The one delivery of a half circuit: see ``circuit.probing``."""


class Claimer:
    def __init__(
        self,
        gateway: Gateway,
        schedule: ClaimSchedule,
        bus: Bus,
        topology: Topology,
        *,
        run_id: RunId,
        limit: int,
        lease: timedelta,
        room: Callable[[], int],
        has_room: asyncio.Event,
        take: Callable[[list[SendJob]], None],
        known: Callable[[WorkspaceId], Sequence[ClaimToken]],
        is_blocked: Callable[[WorkspaceId], bool] = lambda _: False,
    ) -> None:
        self._gateway = gateway
        self._schedule = schedule
        self._bus = bus
        self._topology = topology
        self._run_id = run_id
        self._limit = limit
        self._lease = lease
        self._room = room
        self._has_room = has_room
        self._take = take
        self._known = known
        self._is_blocked = is_blocked
        self._aside = SetAside("claim", gateway)
        self._lost_claims: dict[WorkspaceId, float] = {}
        """By workspace, the start of a claim whose answer was lost: no worker has its deliveries."""

    async def run(self) -> None:
        """Claim until the schedule is closed. Never cancelled during a claim, which would leave unused leases.

        A workspace whose claim fails is set aside; the others continue.
        """
        while (workspace := await self._schedule.next()) is not None:
            await self._has_room.wait()
            started = time.monotonic()
            try:
                await self._turn(workspace)
            except Exception as exc:
                if _may_have_claimed(exc):
                    self._lost_claims.setdefault(workspace, started)
                self._schedule.wake_in(workspace, await self._failed(workspace, exc))
            finally:
                self._schedule.done(workspace)

    def lost(self, workspace: WorkspaceId, started: float) -> None:
        """The answer to a claim was lost: its deliveries are given back at the next turn, which is now."""
        self._lost_claims.setdefault(workspace, started)
        self._schedule.wake(workspace)

    async def _turn(self, workspace: WorkspaceId) -> None:
        unchecked = self._schedule.take_unchecked(workspace)
        if left := self._aside.left(workspace) or (BLOCKED_PAUSE if self._is_blocked(workspace) else None):
            self._schedule.wake_in(workspace, left)
            return
        if workspace in self._lost_claims:
            await self._give_back(workspace)
        if not unchecked or await self._is_due(workspace):
            await self._claim_in(workspace)
        await self._aside.worked(workspace)

    async def _failed(self, workspace: WorkspaceId, exc: Exception) -> timedelta:
        """The delay until the next try. An unavailable database affects all workspaces and sets none of them aside."""
        if not is_away(exc):
            return await self._aside.failed(workspace, exc)
        get_logger().warning("claim.failed", workspace_id=str(workspace), error=type(exc).__name__)
        return timedelta(seconds=0.5 + random() / 2)  # noqa: S311  jitter

    async def _give_back(self, workspace: WorkspaceId) -> None:
        age = timedelta(seconds=time.monotonic() - self._lost_claims[workspace]) + CLOCK_MARGIN
        given_back = await self._gateway.give_back_claims(workspace, self._run_id, self._known(workspace), age)
        del self._lost_claims[workspace]
        if given_back:
            get_logger().warning("claim.given_back", workspace_id=str(workspace), deliveries=given_back)

    async def _is_due(self, workspace: WorkspaceId) -> bool:
        """If nothing is due, schedule the next due time."""
        due_in = await self._gateway.next_due_in(workspace)
        if timedelta() < due_in < NEVER:
            self._schedule.wake_in(workspace, due_in)
        return due_in <= timedelta()

    async def _claim_in(self, workspace: WorkspaceId) -> None:
        limit = min(self._limit, self._room())
        if limit <= 0:
            self._has_room.clear()  # otherwise the loop would come here again without a pause
            self._schedule.wake(workspace)
            return
        claimed = await self._call(workspace, limit)
        if len(claimed.claims) == limit:
            self._schedule.wake(workspace)
            self._bus.wake(self._topology.wakeup_dispatch(workspace))  # more may be due: another replica can help
        elif claimed.next_due_in < NEVER:
            floor = timedelta() if claimed.claims else EMPTY_CLAIM_PAUSE
            self._schedule.wake_in(workspace, max(claimed.next_due_in, floor))

    async def _call(self, workspace: WorkspaceId, limit: int) -> Claimed:
        """The lease counts from before the call, so that it is never overestimated."""
        started = time.monotonic()
        if telemetry.exporting():
            claimed, here = await self._traced(workspace, limit)
        else:
            claimed, here = await self._claim(workspace, limit), None
        answered = time.monotonic()
        claim_seconds.record(answered - started)
        until = started + self._lease.total_seconds()
        if claimed.claims:
            ahead = answered - claimed.now
            self._take([SendJob(claim, claim.slot + ahead, Lease(until), here, started) for claim in claimed.claims])
        return claimed

    async def _claim(self, workspace: WorkspaceId, limit: int) -> Claimed:
        return await self._gateway.claim_deliveries(workspace, self._run_id, limit, self._lease)

    async def _traced(self, workspace: WorkspaceId, limit: int) -> tuple[Claimed, Link | None]:
        """Claim in its own span, linked with the spans of the posts and of the deliveries."""
        with telemetry.tracer().start_as_current_span(
            "claim_deliveries",
            context=telemetry.context_from(None),
            attributes={"autopost.workspace_id": str(workspace)},
        ) as span:
            claimed = await self._claim(workspace, limit)
            span.set_attribute("autopost.claimed", len(claimed.claims))
            for claim in claimed.claims:
                if link := telemetry.link_to(claim.traceparent):
                    span.add_link(link.context)
            return claimed, telemetry.link_to(telemetry.current_traceparent())


def _may_have_claimed(exc: Exception) -> bool:
    """Also true when the answer arrived and could not be decoded."""
    return may_have_committed(exc) or not is_of_the_database(exc)
