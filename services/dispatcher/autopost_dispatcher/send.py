"""Send one claimed delivery, part by part, and hand over how it ended.

Right before each call the lease is looked at: a worker that was held up longer than its lease does not send.
Each acknowledged part is recorded before the next one goes out.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Literal, Protocol

from autopost_adapters.base import Accepted, Adapter, Target
from autopost_contracts.ids import RenderingId, WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Scope, Sent
from autopost_contracts.plan import Part, Plan
from autopost_runtime import metrics, telemetry
from autopost_runtime.config import Secret
from opentelemetry.trace import Link, Span, StatusCode

from autopost_dispatcher.claim import Job
from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.pace import LATE, Pace

TRIES = 5
"""Slots that a call may miss before it is given back: then this worker is too slow for anything."""
PATIENCE = 5.0
"""Seconds that a delivery waits in our hands for a slot; a longer wait, after a provider's 429, is the queue's."""
LONG_AGO = timedelta(hours=1)
"""A retry this long after the post is a trace of its own, linked to the first."""

provider_seconds = metrics.histogram("autopost_provider_call_seconds", "How long provider calls took.")


class Released:
    """Given back unsent: certainly nothing left."""


class Plans(Protocol):
    async def plan(self, workspace: WorkspaceId, rendering: RenderingId) -> Plan | None: ...


class Tokens(Protocol):
    async def token(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Secret | None: ...


class Progress(Protocol):
    async def record_progress(self, claim: Claim, part: int, provider_ids: tuple[str, ...]) -> bool: ...

    async def take_slot(self, claim: Claim) -> timedelta | None: ...


class Sender:
    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        plans: Plans,
        tokens: Tokens,
        progress: Progress,
        *,
        provider_timeout: timedelta,
        stopping: asyncio.Event,
    ) -> None:
        self._adapters = adapters
        self._plans = plans
        self._tokens = tokens
        self._progress = progress
        self._call_time = provider_timeout.total_seconds() + 1
        self._stopping = stopping
        self._pace = Pace()

    async def deliver(self, job: Job) -> Outcome | Released | None:
        """``None`` when the claim turned out to be somebody else's by now: there is nothing to commit."""
        if not telemetry.exporting():
            return await self._deliver(job)
        with _span_of(job) as span:
            outcome = await self._deliver(job)
            if isinstance(outcome, Failed):
                span.set_status(StatusCode.ERROR, outcome.code)
            return outcome

    async def _deliver(self, job: Job) -> Outcome | Released | None:
        claim = job.claim
        adapter = self._adapters.get(claim.platform)
        if adapter is None:
            return Failed.permanent(Scope.CHANNEL, "platform_unknown", f"no adapter for {claim.platform}")
        token = await self._tokens.token(claim.workspace_id, claim.platform, claim.auth_ref)
        if token is None:
            return Failed.permanent(Scope.CHANNEL, "credential_missing", f"{claim.auth_ref} leads to no secret")
        plan = await self._plans.plan(claim.workspace_id, claim.rendering_id)
        if plan is None:
            return Failed.permanent(Scope.DELIVERY, "rendering_missing", "the stored plan is gone")
        target = Target(chat=claim.target_id, token=token, thread=claim.settings.get("message_thread_id"))
        return await self._send_parts(adapter, plan, target, job)

    async def _send_parts(self, adapter: Adapter, plan: Plan, target: Target, job: Job) -> Outcome | Released | None:
        claim = job.claim
        ids = list(claim.acknowledged)
        slot: float | None = job.slot_at
        for index in range(claim.progress, len(plan.parts)):
            if index > claim.progress:
                await self._pause(claim.pace.total_seconds())
                slot = await self._take_slot(claim)
            match await self._come(job, slot):
                case "late":
                    return Released()
                case "lost":
                    return None
                case "now":
                    pass
            answer = await self._call(adapter, plan.parts[index], target, claim)
            if isinstance(answer, Failed):
                return answer
            ids.append(answer.provider_ids)
            is_last = index == len(plan.parts) - 1
            if not is_last and not await self._progress.record_progress(claim, index, answer.provider_ids):
                return None
        return Sent(provider_message_id=ids[0][0], parts=tuple(one for part in ids for one in part))

    async def _come(self, job: Job, slot: float | None) -> Literal["now", "late", "lost"]:
        """Waits for the slot, or for another one if it was missed; ``late`` when the call must not go out any more."""
        for _ in range(TRIES):
            if slot is None:
                return "lost"
            ahead = slot - time.monotonic()
            if ahead > PATIENCE:
                return "late"
            await self._pause(ahead)
            wait = self._pace.wait(job.claim, slot)
            if wait is not None:
                planned = time.monotonic() + wait
                await self._pause(wait)
                now = time.monotonic()
                if now + self._call_time > job.lease_until or self._stopping.is_set():
                    return "late"
                if now - planned < LATE:  # unless the whole process stood still meanwhile
                    return "now"
            slot = await self._take_slot(job.claim)
        return "late"

    async def _take_slot(self, claim: Claim) -> float | None:
        wait = await self._progress.take_slot(claim)
        return None if wait is None else time.monotonic() + wait.total_seconds()

    async def _pause(self, seconds: float) -> None:
        """Not beyond the order to stop."""
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
            except TimeoutError:
                return

    async def _call(self, adapter: Adapter, part: Part, target: Target, claim: Claim) -> Accepted | Failed:
        started = time.monotonic()
        answer = await adapter.send(part, target)
        outcome = answer.code if isinstance(answer, Failed) else "accepted"
        provider_seconds.record(time.monotonic() - started, {"platform": claim.platform, "outcome": outcome})
        return answer


def _span_of(job: Job) -> AbstractContextManager[Span]:
    """The span of this delivery, in the trace of its post."""
    claim = job.claim
    return telemetry.tracer().start_as_current_span(
        "deliver",
        context=telemetry.context_from(None if claim.age > LONG_AGO else claim.traceparent),
        links=_links(job),
        attributes={
            "autopost.workspace_id": str(claim.workspace_id),
            "autopost.delivery_id": str(claim.delivery_id),
            "autopost.platform": claim.platform,
            "autopost.attempt": claim.attempt,
        },
    )


def _links(job: Job) -> list[Link]:
    """The claim that took it and, where it is no longer the parent, the post it came from."""
    links = [job.link] if job.link else []
    if job.claim.age > LONG_AGO and (origin := telemetry.link_to(job.claim.traceparent)):
        links.append(origin)
    return links
