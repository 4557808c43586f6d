"""Claim due deliveries as fast as they can be sent: of all workspaces whose turn it is in one call.

A workspace whose turn comes alone gets a claim of its own, which costs less for a large backlog.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from random import random
from typing import TypeVar

from autopost_contracts.ids import ClaimToken, RunId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.set_aside import SetAside, error_name
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.errors import is_of_the_database
from autopost_runtime.postgres.pool import is_away, may_have_committed
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct
from opentelemetry.trace import Link

from autopost_dispatcher.claim.batch_size import BatchSize
from autopost_dispatcher.claim.lease import Lease
from autopost_dispatcher.claim.other_replicas import OtherReplicas
from autopost_dispatcher.claim.schedule import ClaimSchedule, Serves
from autopost_dispatcher.gateway import NEVER, Claim, Claimed, ClaimedDue, Gateway, Look

BLOCKED_PAUSE = timedelta(seconds=5)
"""Pause between claims in a workspace whose outcomes cannot be committed."""
CLOCK_MARGIN = timedelta(seconds=5)
"""Margin for the age of a claim whose answer was lost."""
EMPTY_CLAIM_PAUSE = timedelta(milliseconds=10)
"""Pause after an empty claim in a due workspace: another replica is claiming there."""
Answer = TypeVar("Answer", Claimed, ClaimedDue)

SKIPPED_PAUSE = 0.005
"""Seconds. The same after a claim over many workspaces."""
SOONEST = 0.001

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
        late: float = 0.05,
        missed: Callable[[], int] = lambda: 0,
        has_calls: Callable[[WorkspaceId], bool] = lambda _: True,
    ) -> None:
        """``late``: how many seconds after its slot a call may be made; ``missed``: how many calls were later;
        ``has_calls``: whether deliveries are under way in that workspace.
        """
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
        self._late = late
        self._missed = missed
        self._aside = SetAside("claim", gateway)
        self._left_out: set[WorkspaceId] = set()
        """By the last claim over many workspaces: only a claim there alone can end their pauses."""
        self._others = OtherReplicas(has_calls)
        self._lost_claims: dict[WorkspaceId, float] = {}
        """By workspace, the start of a claim whose answer was lost: no worker has its deliveries."""

    async def run(self, serves: Serves = Serves.ALL) -> None:
        """Claim until the schedule is closed. Never cancelled during a claim, which would leave unused leases.

        A workspace whose claim fails is set aside; the others continue.
        """
        size = BatchSize(self._schedule, self._late, self._missed)
        while workspaces := await self._schedule.next_batch(size.now, serves):
            await self._has_room.wait()
            try:
                with size.measured(len(workspaces)):
                    await self._claim_in_all(workspaces, size.tolerance)
            finally:
                for workspace in workspaces:
                    self._schedule.done(workspace)
            await size.collect()

    async def _claim_in_all(self, workspaces: Sequence[WorkspaceId], tolerance: timedelta) -> None:
        """In one call, but for those that need a turn of their own."""
        together = [one for one in workspaces if not self._needs_own_turn(one)] if len(workspaces) > 1 else []
        for workspace in set(workspaces).difference(together):
            await self._try_turn(workspace)
        if together:
            await self._try_together(together, tolerance)

    def _needs_own_turn(self, workspace: WorkspaceId) -> bool:
        return (
            workspace in self._lost_claims
            or workspace in self._left_out
            or self._aside.is_failing(workspace)
            or self._is_blocked(workspace)
        )

    async def _try_together(self, workspaces: list[WorkspaceId], tolerance: timedelta) -> None:
        """If the call fails because of one of them, the others get calls without it."""
        started = time.monotonic()
        try:
            await self._claim_due(workspaces, tolerance)
        except Exception as exc:
            if _may_have_claimed(exc):
                for workspace in workspaces:
                    self._lost_claims.setdefault(workspace, started)
            if is_away(exc):
                get_logger().warning("claim.failed", workspaces=len(workspaces), error=error_name(exc))
                for workspace in workspaces:
                    self._schedule.wake_in(workspace, _away_pause())
                return
            get_logger().warning("claim.divided", workspaces=len(workspaces), error=error_name(exc))
            half = len(workspaces) // 2
            for part in (workspaces[:half], workspaces[half:]):
                await self._claim_in_all(part, tolerance)

    async def _claim_due(self, workspaces: list[WorkspaceId], tolerance: timedelta) -> None:
        room = self._room()
        if room <= 0:
            self._has_room.clear()  # otherwise the loop would come here again without a pause
            for workspace in workspaces:
                self._schedule.again(workspace)
            return
        for workspace in workspaces:
            self._schedule.take_unchecked(workspace)
        started = time.monotonic()
        claimed, here = await self._traced(
            self._gateway.claim_due(workspaces, self._run_id, min(self._limit, room), room, self._lease, tolerance)
        )
        self._start(claimed.claims, claimed.now, started, here)
        served = {claim.workspace_id for claim in claimed.claims}
        for looked_in, look in claimed.looks.items():
            self._plan_next(WorkspaceId(looked_in), look, looked_in in served)

    def _plan_next(self, workspace: WorkspaceId, look: Look, was_served: bool) -> None:
        if look.alone:
            self._left_out.add(workspace)
            self._schedule.again(workspace)
        elif look.due_in is None:
            self._others.forget(workspace)
        elif was_served:
            self._others.serves(workspace, look.due_in)
            if look.due_in <= 0:
                self._schedule.again(workspace)
            else:
                self._schedule.wake_after(workspace, max(look.due_in, SOONEST))
        elif look.looked:
            self._schedule.wake_after(workspace, max(look.due_in, SOONEST))
        elif look.due_in <= 0:
            self._schedule.wake_after(workspace, SKIPPED_PAUSE)
        else:
            self._schedule.wake_after(workspace, self._others.was_before(workspace, look.due_in))

    async def _try_turn(self, workspace: WorkspaceId) -> None:
        started = time.monotonic()
        try:
            await self._turn(workspace)
        except Exception as exc:
            if _may_have_claimed(exc):
                self._lost_claims.setdefault(workspace, started)
            self._schedule.wake_in(workspace, await self._failed(workspace, exc))

    def lost(self, workspace: WorkspaceId, started: float) -> None:
        """The answer to a claim was lost: its deliveries are given back at the next turn, which is now."""
        self._lost_claims.setdefault(workspace, started)
        self._schedule.wake(workspace)

    async def _turn(self, workspace: WorkspaceId) -> None:
        unchecked = self._schedule.take_unchecked(workspace)
        self._left_out.discard(workspace)
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
        return _away_pause()

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
            self._schedule.again(workspace)
            return
        claimed = await self._call(workspace, limit)
        if len(claimed.claims) == limit:
            self._schedule.again(workspace)
            self._bus.wake(self._topology.wakeup_dispatch(workspace))  # more may be due: another replica can help
        elif claimed.next_due_in < NEVER:
            floor = timedelta() if claimed.claims else EMPTY_CLAIM_PAUSE
            self._schedule.wake_in(workspace, max(claimed.next_due_in, floor))

    async def _call(self, workspace: WorkspaceId, limit: int) -> Claimed:
        started = time.monotonic()
        claimed, here = await self._traced(self._gateway.claim_deliveries(workspace, self._run_id, limit, self._lease))
        self._start(claimed.claims, claimed.now, started, here)
        return claimed

    def _start(self, claims: Sequence[Claim], now: float, started: float, here: Link | None) -> None:
        """The lease counts from before the call, so that it is never overestimated."""
        answered = time.monotonic()
        claim_seconds.record(answered - started)
        if claims:
            until, ahead = started + self._lease.total_seconds(), answered - now
            self._take([SendJob(claim, claim.slot + ahead, Lease(until), here, started) for claim in claims])

    async def _traced(self, call: Awaitable[Answer]) -> tuple[Answer, Link | None]:
        """Claim in its own span, linked with the spans of the posts and of the deliveries."""
        if not telemetry.exporting():
            return await call, None
        with telemetry.tracer().start_as_current_span("claim_deliveries", context=telemetry.context_from(None)) as span:
            claimed = await call
            span.set_attribute("autopost.claimed", len(claimed.claims))
            span.set_attribute("autopost.workspaces", len({claim.workspace_id for claim in claimed.claims}))
            for claim in claimed.claims:
                if link := telemetry.link_to(claim.traceparent):
                    span.add_link(link.context)
            return claimed, telemetry.link_to(telemetry.current_traceparent())


def _away_pause() -> timedelta:
    return timedelta(seconds=0.5 + random() / 2)  # noqa: S311  jitter


def _may_have_claimed(exc: Exception) -> bool:
    """Also true when the answer arrived and could not be decoded."""
    return may_have_committed(exc) or not is_of_the_database(exc)
