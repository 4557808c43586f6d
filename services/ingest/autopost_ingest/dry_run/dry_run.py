"""Preview a post for every channel and store nothing.

The steps are those of a real post up to the database, which runs ``preview_post`` instead of ``admit_posts``. So a plan
shown here is identical to the one that the post would store, including its hash.
"""

from collections.abc import Iterable
from typing import cast

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Plan
from autopost_runtime.telemetry import tracing as telemetry
from msgspec.structs import replace

from autopost_ingest.admission.admit import Admission
from autopost_ingest.dry_run.answer import (
    ChannelCounts,
    ChannelDecision,
    Dedup,
    DryRun,
    Outcome,
    PlanPreview,
    Route,
    Timing,
    Verdict,
)
from autopost_ingest.dry_run.judge import judge
from autopost_ingest.dry_run.media import DryMedia, with_stand_ins
from autopost_ingest.dry_run.reasons import verdict_reason, wait_reasons, why_not_routed
from autopost_ingest.gateway import ChannelPreview, Endpoint, Gateway, PostPreview
from autopost_ingest.posts.compile import needs_upload
from autopost_ingest.posts.enqueue import payload_hash_of, post_of
from autopost_ingest.posts.normalize import Normalized, routing_tags
from autopost_ingest.posts.routing import find_channels
from autopost_ingest.posts.schedule import is_late, late
from autopost_ingest.posts.warnings import mark_warnings, tag_warnings
from autopost_ingest.posts.worker_calls import PlanMade
from autopost_ingest.request.query import PARAMETERS, check_query


class DryRunner:
    def __init__(self, admission: Admission, gateway: Gateway, media: DryMedia) -> None:
        self._admission = admission.silent()
        self._gateway = gateway
        self._media = media

    async def receive(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        async with self._admission.accounted(request, endpoint):
            check_query(request.query, PARAMETERS)
            post = await self._admission.body_of(request, endpoint)
            found = await self.preview(endpoint, post, skip_media="media" in request.query)
        answer = replace(found, trace_id=telemetry.current_trace_id())
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    async def preview(self, endpoint: Endpoint, request: PostRequest, *, skip_media: bool) -> DryRun:
        """Raises ``InvalidPost`` like a real post."""
        request = await find_channels(self._gateway, endpoint.workspace_id, request, routing_tags(request)[1])
        answer = await self._preview(endpoint, request, skip_media=skip_media)
        if is_late(request) and answer.verdict != "duplicate":
            raise late(request)
        return answer

    async def _preview(self, endpoint: Endpoint, request: PostRequest, *, skip_media: bool) -> DryRun:
        by_url = await self._media.by_url(endpoint.workspace_id, request)
        if by_url and (told := await self._by_url(endpoint, request, by_url)):
            return told
        normalized, is_whole = await self._media.look_up(endpoint.workspace_id, request, skip=skip_media)
        found = await self._ask(endpoint, request, normalized, is_whole=is_whole)
        made = await self._media.offload.compile(endpoint.workspace_id, normalized, found.profiles)
        answer = _answer(found, normalized, request, _plans(made, is_whole=is_whole), is_whole=is_whole)
        return await self._with_marks(endpoint, normalized, answer)

    async def explain(
        self, endpoint: Endpoint, request: PostRequest, normalized: Normalized, *, is_stored: bool = False
    ) -> DryRun:
        """What would become of the post; its media is looked up already. Media at URLs is not fetched.

        ``is_stored``: the post was accepted, and its own deliveries are no twins of it.
        """
        is_whole = not any(medium.url is not None and medium.blob_ref is None for medium in normalized.content.media)
        if not is_whole:
            normalized = with_stand_ins(normalized)
        found = await self._ask(endpoint, request, normalized, is_whole=is_whole)
        if is_stored:
            found = replace(found, channels=tuple(replace(channel, twin=None) for channel in found.channels))
        made = await self._media.offload.compile(endpoint.workspace_id, normalized, found.profiles)
        return _answer(found, normalized, request, _plans(made, is_whole=is_whole), is_whole=is_whole)

    async def _by_url(self, endpoint: Endpoint, request: PostRequest, normalized: Normalized) -> DryRun | None:
        """``None`` when a channel needs the bytes."""
        found = await self._ask(endpoint, request, normalized, is_whole=True)
        made = await self._media.offload.compile(endpoint.workspace_id, normalized, found.profiles)
        if not made or any(needs_upload(each.problems) for each in made):
            return None
        answer = _answer(found, normalized, request, _plans(made, is_whole=True), is_whole=True)
        return await self._with_marks(endpoint, normalized, answer)

    async def _with_marks(self, endpoint: Endpoint, normalized: Normalized, answer: DryRun) -> DryRun:
        marks = await self._media.offload.unclosed_marks(endpoint.workspace_id, normalized.content)
        return replace(answer, warnings=(*answer.warnings, *mark_warnings(marks)))

    async def _ask(
        self, endpoint: Endpoint, request: PostRequest, normalized: Normalized, *, is_whole: bool
    ) -> PostPreview:
        post = post_of(request, normalized) | ({} if is_whole else {"content_hash": None})
        if any(item.url is not None for item in request.media):
            post["request"] = {}  # marks a post that would be staged
        return await self._gateway.preview_post(endpoint, post, payload_hash_of(request))


def _answer(
    found: PostPreview, normalized: Normalized, request: PostRequest, plans: dict[str, PlanPreview], *, is_whole: bool
) -> DryRun:
    routed_by = replace(normalized, tags=found.tags)
    decisions = tuple(_decision(channel, routed_by, request, plans, is_whole=is_whole) for channel in found.channels)
    judgement = judge(found, decisions, plans, normalized.tags)
    verdict = _verdict(found, is_refused=judgement.refusal is not None)
    return DryRun(
        verdict=verdict,
        reason=judgement.refusal.detail
        if verdict == "refused" and judgement.refusal
        else verdict_reason(verdict, found),
        duplicate_of=found.receipt,
        retry_after_ms=found.retry_after_ms,
        content_hash=normalized.content_hash if is_whole else None,
        message_id=found.message_id,
        counts=_counts(decisions),
        channels=decisions,
        plans=plans,
        problems=judgement.problems,
        refusal=judgement.refusal,
        warnings=(*tag_warnings(found.tags, normalized.tags), *judgement.warnings),
    )


def _verdict(found: PostPreview, *, is_refused: bool) -> Verdict:
    """In the order of the checks."""
    if found.retry_after_ms is not None:
        return "rate_limited"
    if found.receipt:
        return "duplicate"
    return "refused" if is_refused else "accepted"


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


def _plans(made: Iterable[PlanMade], *, is_whole: bool) -> dict[str, PlanPreview]:
    return {each.profile_hash: _plan(each, is_whole=is_whole) for each in made}


def _plan(made: PlanMade, *, is_whole: bool) -> PlanPreview:
    return PlanPreview(
        plan_hash=made.plan_hash if is_whole else None,
        plan=None if made.plan is None else cast(Plan, msgspec.Raw(made.plan)),  # only serialised
        problems=made.problems,
        template_version=made.template_version,
    )


def _counts(decisions: tuple[ChannelDecision, ...]) -> ChannelCounts:
    outcomes = [decision.outcome for decision in decisions]
    return ChannelCounts(
        routed=len(outcomes) - outcomes.count("not_routed"),
        enqueued=outcomes.count("enqueued"),
        deduped=outcomes.count("deduped"),
        validation_failed=outcomes.count("validation_failed"),
    )
