"""Send one claimed delivery, part by part, and hand over how it ended.

Right before each call the lease is looked at: a worker that was held up longer than its lease does not send.
Each acknowledged part is recorded before the next one goes out.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Protocol

from autopost_adapters.base import Accepted, Adapter, Target
from autopost_contracts.ids import RenderingId, WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Scope, Sent
from autopost_contracts.plan import Part, Plan
from autopost_runtime import metrics, telemetry
from autopost_runtime.config import Secret
from opentelemetry.trace import Link, Span, StatusCode

from autopost_dispatcher.claim import Job
from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.pace import Pace

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
        last = len(plan.parts) - 1
        slot, pace = job.slot_at, claim.pace.total_seconds()
        for index in range(claim.progress, len(plan.parts)):
            if await self._held_up(job, slot):
                return Released()
            slot = max(slot, time.monotonic()) + pace
            answer = await self._call(adapter, plan.parts[index], target, claim)
            if isinstance(answer, Failed):
                return answer
            ids.append(answer.provider_ids)
            if index < last and not await self._progress.record_progress(claim, index, answer.provider_ids):
                return None
        return Sent(provider_message_id=ids[0][0], parts=tuple(one for part in ids for one in part))

    async def _held_up(self, job: Job, slot: float) -> bool:
        """Waits for the part's slot; true when it must not be sent any more."""
        await self._pause(slot - time.monotonic())
        wait = self._pace.wait(job, slot)
        if wait is None:
            return True
        await self._pause(wait)
        return self._stopping.is_set() or time.monotonic() + self._call_time > job.lease_until

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
