"""Send one claimed delivery: find its adapter and its token, then run it."""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Protocol

import msgspec
from autopost_adapters.base import Adapter, Target
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Scope
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.credentials import Identity
from autopost_runtime.secrets.redaction import mask_secret
from autopost_runtime.telemetry import tracing as telemetry
from opentelemetry.trace import Link, Span, StatusCode

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.send.delivery import Delivery, SendContext
from autopost_dispatcher.send.end_delivery import Released

LONG_AGO = timedelta(hours=1)
"""A retry this long after the post starts its own trace, linked to the first."""


class Identities(Protocol):
    def known(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None: ...

    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None: ...

    def forget(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> None: ...


class DeliverySender:
    def __init__(self, adapters: Mapping[str, Adapter], identities: Identities, context: SendContext) -> None:
        self._adapters = adapters
        self._identities = identities
        self._context = context

    def deliver(self, job: SendJob) -> Awaitable[Outcome | Released | None]:
        """``None`` when the claim is no longer valid: there is nothing to commit."""
        return self._traced(job) if telemetry.exporting() else self._deliver(job)

    async def _traced(self, job: SendJob) -> Outcome | Released | None:
        with _span_of(job) as span:
            outcome = await self._deliver(job)
            if isinstance(outcome, Failed):
                span.set_status(StatusCode.ERROR, outcome.code)
            return outcome

    async def _deliver(self, job: SendJob) -> Outcome | Released | None:
        claim, channel = job.claim, job.claim.channel
        adapter = self._adapters.get(channel.platform)
        if adapter is None:
            return Failed.permanent(Scope.CHANNEL, "platform_unknown", f"unknown platform {channel.platform}")
        key = (claim.workspace_id, channel.platform, channel.auth_ref)
        identity = self._identities.known(*key) or await self._identities.identity(*key)
        if identity is None:
            return Failed.permanent(
                Scope.CHANNEL,
                "credential_missing",
                f"no token found for {channel.auth_ref}; bind one with `autopost auth bind`",
            )
        if claim.plan is None:
            return Failed.permanent(
                Scope.DELIVERY, "rendering_missing", "the stored rendering is missing or cannot be read"
            )
        thread = claim.plan.thread or channel.settings.get("message_thread_id")
        target = Target(chat=channel.target_id, token=identity.token, thread=thread)
        outcome = await Delivery(self._context, adapter, claim.plan, target, job, identity).run()
        if not isinstance(outcome, Failed):
            return outcome
        if outcome.code == "thread_not_found" and claim.plan.thread is not None:
            # The post named the topic, so the mistake is not the channel's.
            outcome = msgspec.structs.replace(outcome, scope=Scope.DELIVERY)
        if outcome.code == "unauthorized":
            self._identities.forget(*key)  # it may have been rotated
        return _without(identity.token, outcome)


def _without(token: Secret, failed: Failed) -> Failed:
    """The failure with the token masked, in case the answer of the platform repeats it."""
    encoded = msgspec.json.encode(failed)
    masked = mask_secret(encoded, token.reveal())
    return failed if masked == encoded else msgspec.json.decode(masked, type=Failed)


def _span_of(job: SendJob) -> AbstractContextManager[Span]:
    """The span of this delivery, in the trace of its post."""
    claim = job.claim
    return telemetry.tracer().start_as_current_span(
        "deliver",
        context=telemetry.context_from(None if claim.age > LONG_AGO else claim.traceparent),
        links=_links(job),
        attributes={
            "autopost.workspace_id": str(claim.workspace_id),
            "autopost.delivery_id": str(claim.delivery_id),
            "autopost.platform": claim.channel.platform,
            "autopost.attempt": claim.attempt,
        },
    )


def _links(job: SendJob) -> list[Link]:
    """Links to the claim and, if the post is no longer the parent, to the post."""
    links = [job.link] if job.link else []
    if job.claim.age > LONG_AGO and (origin := telemetry.link_to(job.claim.traceparent)):
        links.append(origin)
    return links
