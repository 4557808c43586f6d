"""Say what would become of a post, channel by channel, and write nothing.

The steps are those of a real post, up to the database; there ``preview_post`` stands in the place of ``admit_posts``.
So a plan shown here is the plan that the same post would store, down to its hash.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Compiled, Plan
from autopost_contracts.plan import Problem as Fault
from autopost_runtime import telemetry
from autopost_runtime.web import Problem
from msgspec import Struct
from msgspec.structs import replace

from autopost_ingest.admit import Admission
from autopost_ingest.compile import compile_all
from autopost_ingest.dry_run_media import DryMedia
from autopost_ingest.dry_run_words import verdict_reason, wait_reasons, why_not_routed
from autopost_ingest.enqueue import payload_hash_of, post_of
from autopost_ingest.gateway import ChannelPreview, Endpoint, Gateway, PostPreview, Repeated, Twin
from autopost_ingest.normalize import Normalized

PARAMETERS = {"dry_run": "1", "media": "skip"}
Verdict = Literal["accepted", "duplicate", "rate_limited"]
Outcome = Literal["enqueued", "deduped", "validation_failed", "not_routed"]


class Route(Struct, frozen=True, kw_only=True):
    routed: bool
    reasons: tuple[str, ...]


class Dedup(Struct, frozen=True, kw_only=True):
    """``known`` is false where the content could not be compared, because its media was skipped."""

    known: bool
    twin: Twin | None
    """The delivery that keeps this one back; without ``until`` as long as it is in flight."""


class Timing(Struct, frozen=True, kw_only=True):
    earliest: datetime | None
    """``None``: never, as the channel is now."""
    waits: tuple[str, ...]


class ChannelDecision(Struct, frozen=True, kw_only=True):
    channel_id: UUID
    platform: str
    title: str | None
    outcome: Outcome
    route: Route
    dedup: Dedup
    timing: Timing
    profile: str | None
    """The key of its plan in ``plans``; ``None`` where the post does not go."""
    plan_hash: str | None


class PlanPreview(Struct, frozen=True, kw_only=True):
    """What one render profile makes of the post: a plan, or the problems that forbid one."""

    plan_hash: str | None
    plan: Plan | None
    problems: tuple[Fault, ...]
    template_version: int | None


class Counts(Struct, frozen=True, kw_only=True):
    routed: int
    enqueued: int
    deduped: int
    validation_failed: int


class DryRun(Struct, frozen=True, kw_only=True):
    """The answer to ``POST /v1/posts?dry_run=1``."""

    status: Literal["dry_run"] = "dry_run"
    verdict: Verdict
    reason: str
    duplicate_of: Repeated | None
    retry_after_ms: int | None
    content_hash: str | None
    message_id: UUID | None
    """Of the same content, posted before."""
    counts: Counts
    channels: tuple[ChannelDecision, ...]
    plans: dict[str, PlanPreview]
    trace_id: str | None = None


class DryRunner:
    def __init__(self, admission: Admission, gateway: Gateway, media: DryMedia) -> None:
        self._admission = admission.silent()
        self._gateway = gateway
        self._media = media

    async def receive(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        async with self._admission.accounted(request, endpoint):
            _check_parameters(request.query)
            post = await self._admission.body_of(request, endpoint)
            found = await self.preview(endpoint, post, skip_media="media" in request.query)
        answer = replace(found, trace_id=telemetry.current_trace_id())
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    async def preview(self, endpoint: Endpoint, request: PostRequest, *, skip_media: bool) -> DryRun:
        """Raises ``Refused`` like the real post."""
        normalized, is_whole = await self._media.materialize(endpoint.workspace_id, request, skip=skip_media)
        post = post_of(request, normalized) | ({} if is_whole else {"content_hash": None})
        found = await self._gateway.preview_post(endpoint, post, payload_hash_of(request))
        plans = {
            compiled.profile_hash: _plan(compiled, is_whole=is_whole)
            for compiled in compile_all(normalized, found.profiles)
        }
        return _answer(found, normalized, request, plans, is_whole=is_whole)


def _check_parameters(query: Mapping[str, str]) -> None:
    """What is not known is refused: passed over in silence, it would be taken for obeyed."""
    for name, value in query.items():
        if name not in PARAMETERS:
            raise Problem(400, "Bad Request", "there is no such parameter", field=name)
        if value != PARAMETERS[name]:
            raise Problem(400, "Bad Request", f"expected {PARAMETERS[name]}", field=name)


def _answer(
    found: PostPreview, normalized: Normalized, request: PostRequest, plans: dict[str, PlanPreview], *, is_whole: bool
) -> DryRun:
    decisions = tuple(_decision(channel, normalized, request, plans, is_whole=is_whole) for channel in found.channels)
    verdict = _verdict(found)
    return DryRun(
        verdict=verdict,
        reason=verdict_reason(verdict, found),
        duplicate_of=found.receipt,
        retry_after_ms=found.retry_after_ms,
        content_hash=normalized.content_hash if is_whole else None,
        message_id=found.message_id,
        counts=_counts(decisions),
        channels=decisions,
        plans=plans,
    )


def _verdict(found: PostPreview) -> Verdict:
    """In the order in which the guards stand."""
    if found.retry_after_ms is not None:
        return "rate_limited"
    return "duplicate" if found.receipt else "accepted"


def _decision(
    channel: ChannelPreview,
    normalized: Normalized,
    request: PostRequest,
    plans: dict[str, PlanPreview],
    *,
    is_whole: bool,
) -> ChannelDecision:
    plan = plans[channel.profile_hash] if channel.routed else None
    return ChannelDecision(
        channel_id=channel.channel_id,
        platform=channel.platform,
        title=channel.title,
        outcome=_outcome(channel, plan),
        route=Route(routed=channel.routed, reasons=why_not_routed(channel, normalized)),
        dedup=Dedup(known=is_whole, twin=channel.twin),
        timing=Timing(earliest=channel.opens_at, waits=wait_reasons(channel, request.scheduled_for)),
        profile=channel.profile_hash if plan else None,
        plan_hash=plan.plan_hash if plan else None,
    )


def _outcome(channel: ChannelPreview, plan: PlanPreview | None) -> Outcome:
    if plan is None:
        return "not_routed"
    if channel.twin:
        return "deduped"
    return "validation_failed" if plan.plan is None else "enqueued"


def _plan(compiled: Compiled, *, is_whole: bool) -> PlanPreview:
    return PlanPreview(
        plan_hash=compiled.plan.digest() if compiled.plan and is_whole else None,
        plan=compiled.plan,
        problems=compiled.problems,
        template_version=compiled.template_version,
    )


def _counts(decisions: tuple[ChannelDecision, ...]) -> Counts:
    outcomes = [decision.outcome for decision in decisions]
    return Counts(
        routed=len(outcomes) - outcomes.count("not_routed"),
        enqueued=outcomes.count("enqueued"),
        deduped=outcomes.count("deduped"),
        validation_failed=outcomes.count("validation_failed"),
    )
