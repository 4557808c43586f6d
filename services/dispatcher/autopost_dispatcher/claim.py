"""Claim what is due, workspace by workspace, as fast as it can be sent."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from random import random

from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime import metrics, telemetry
from autopost_runtime.jetstream import Bus
from autopost_runtime.logs import get_logger
from autopost_runtime.postgres import is_retryable
from msgspec import Struct
from opentelemetry.trace import Link

from autopost_dispatcher.gateway import NEVER, Claim, Claimed, Gateway
from autopost_dispatcher.lease import Lease
from autopost_dispatcher.schedule import Schedule

BREATH = timedelta(milliseconds=10)
"""Between two looks at a workspace that is due and gave nothing: another replica is in it right now."""

claim_seconds = metrics.histogram("autopost_claim_seconds", "How long claim_deliveries took.")


class Job(Struct, frozen=True, eq=False):
    """A claim on its way to be sent: when its slot is by our clock, until when it is safe, and which span made it."""

    claim: Claim
    slot_at: float
    lease: Lease
    link: Link | None


class Claimer:
    def __init__(
        self,
        gateway: Gateway,
        schedule: Schedule,
        bus: Bus,
        topology: Topology,
        *,
        run_id: RunId,
        limit: int,
        lease: timedelta,
        room: Callable[[], int],
        has_room: asyncio.Event,
        take: Callable[[list[Job]], None],
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

    async def run(self) -> None:
        """Until the schedule is closed. Never cancelled inside a call: what it claimed would be leased to nobody."""
        while (workspace := await self._schedule.next()) is not None:
            await self._has_room.wait()
            try:
                if not self._schedule.is_doubtful(workspace) or await self._is_due(workspace):
                    await self._claim_in(workspace)
            except Exception as exc:
                if not is_retryable(exc):
                    raise
                get_logger().warning("claim.failed", workspace_id=str(workspace), error=type(exc).__name__)
                self._schedule.wake_in(workspace, timedelta(seconds=0.5 + random() / 2))  # noqa: S311  jitter
            finally:
                self._schedule.done(workspace)

    async def _is_due(self, workspace: WorkspaceId) -> bool:
        """If not, the schedule knows by now when it will be."""
        due_in = await self._gateway.next_due_in(workspace)
        if timedelta() < due_in < NEVER:
            self._schedule.wake_in(workspace, due_in)
        return due_in <= timedelta()

    async def _claim_in(self, workspace: WorkspaceId) -> None:
        limit = min(self._limit, self._room())
        if limit <= 0:
            self._has_room.clear()  # or the next round would come here again without a pause
            self._schedule.wake(workspace)
            return
        claimed = await self._call(workspace, limit)
        if len(claimed.claims) == limit:
            self._schedule.wake(workspace)
            self._bus.wake(self._topology.wakeup_dispatch(workspace))  # more than we took: a free replica may help
        elif claimed.next_due_in < NEVER:
            floor = timedelta() if claimed.claims else BREATH
            self._schedule.wake_in(workspace, max(claimed.next_due_in, floor))

    async def _call(self, workspace: WorkspaceId, limit: int) -> Claimed:
        """The lease is counted from before the call, so that we never think it longer than it is."""
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
            self._take([Job(claim, claim.slot + ahead, Lease(until), here) for claim in claimed.claims])
        return claimed

    async def _claim(self, workspace: WorkspaceId, limit: int) -> Claimed:
        return await self._gateway.claim_deliveries(workspace, self._run_id, limit, self._lease)

    async def _traced(self, workspace: WorkspaceId, limit: int) -> tuple[Claimed, Link | None]:
        """In a span of its own, which links to the posts and which their deliveries link to."""
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
