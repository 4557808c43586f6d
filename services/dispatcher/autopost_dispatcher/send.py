"""Send one claimed delivery: find its adapter and its token, and let it fly."""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Protocol
from urllib.parse import quote

import msgspec
from autopost_adapters.base import Adapter, Target
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Scope
from autopost_runtime import telemetry
from autopost_runtime.config import Secret
from autopost_runtime.redaction import MASK
from opentelemetry.trace import Link, Span, StatusCode

from autopost_dispatcher.claim import Job
from autopost_dispatcher.credentials import Identity
from autopost_dispatcher.flight import Desk, Flight
from autopost_dispatcher.over import Released

LONG_AGO = timedelta(hours=1)
"""A retry this long after the post is a trace of its own, linked to the first."""


class Identities(Protocol):
    def known(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None: ...

    async def identity(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Identity | None: ...

    def forget(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> None: ...


class Sender:
    def __init__(self, adapters: Mapping[str, Adapter], identities: Identities, desk: Desk) -> None:
        self._adapters = adapters
        self._identities = identities
        self._desk = desk

    def deliver(self, job: Job) -> Awaitable[Outcome | Released | None]:
        """``None`` when the claim turned out to be somebody else's by now: there is nothing to commit."""
        return self._traced(job) if telemetry.exporting() else self._deliver(job)

    async def _traced(self, job: Job) -> Outcome | Released | None:
        with _span_of(job) as span:
            outcome = await self._deliver(job)
            if isinstance(outcome, Failed):
                span.set_status(StatusCode.ERROR, outcome.code)
            return outcome

    async def _deliver(self, job: Job) -> Outcome | Released | None:
        claim, channel = job.claim, job.claim.channel
        adapter = self._adapters.get(channel.platform)
        if adapter is None:
            return Failed.permanent(Scope.CHANNEL, "platform_unknown", f"no adapter for {channel.platform}")
        key = (claim.workspace_id, channel.platform, channel.auth_ref)
        identity = self._identities.known(*key) or await self._identities.identity(*key)
        if identity is None:
            return Failed.permanent(Scope.CHANNEL, "credential_missing", f"{channel.auth_ref} leads to no secret")
        if claim.plan is None:
            return Failed.permanent(Scope.DELIVERY, "rendering_missing", "the stored plan is gone or cannot be read")
        thread = channel.settings.get("message_thread_id")
        target = Target(chat=channel.target_id, token=identity.token, thread=thread)
        outcome = await Flight(self._desk, adapter, claim.plan, target, job, identity.bot_id).run()
        if not isinstance(outcome, Failed):
            return outcome
        if outcome.code == "unauthorized":
            self._identities.forget(*key)  # it may have been rotated
        return _without(identity.token, outcome)


def _without(token: Secret, failed: Failed) -> Failed:
    """A platform, or a gateway before it, may repeat our request, and with it the token."""
    told = hidden = msgspec.json.encode(failed).decode()
    for shown in {token.reveal(), quote(token.reveal(), safe=""), quote(token.reveal())}:
        hidden = hidden.replace(shown, MASK)
    return failed if hidden == told else msgspec.json.decode(hidden, type=Failed)


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
            "autopost.platform": claim.channel.platform,
            "autopost.attempt": claim.attempt,
        },
    )


def _links(job: Job) -> list[Link]:
    """The claim that took it and, where it is no longer the parent, the post it came from."""
    links = [job.link] if job.link else []
    if job.claim.age > LONG_AGO and (origin := telemetry.link_to(job.claim.traceparent)):
        links.append(origin)
    return links
