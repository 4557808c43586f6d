"""``POST /v1/posts``: admit, normalise and enqueue a post; the response is sent after the commit, never before."""

from datetime import timedelta
from typing import Any

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest
from autopost_runtime.http.server import WholeResponse
from autopost_runtime.http.web import MIDDLEWARES, HttpProblem
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from msgspec import Struct

from autopost_ingest.admission.admit import Admission, inactive, rate_limited, unknown
from autopost_ingest.admission.refusals import refuse
from autopost_ingest.dry_run.dry_run import DryRunner
from autopost_ingest.dry_run.explain import Explainer, Reach, unreachable
from autopost_ingest.gateway import Endpoint, Verdict
from autopost_ingest.http.openapi import serve_document
from autopost_ingest.http.unknown_paths import name_paths
from autopost_ingest.posts.enqueue import Admit, Enqueuer, ProfilesUnsettled
from autopost_ingest.posts.normalize import Normalized
from autopost_ingest.posts.routing import find_channels
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.posts.warnings import PostWarning, mark_warnings, tag_warnings
from autopost_ingest.request.query import check_query

posts = metrics.counter("autopost_ingress_posts_total", "Posts by verdict.")


def application(
    admission: Admission, stored_media: StoredMedia, enqueuer: Enqueuer, dry_runner: DryRunner
) -> web.Application:
    app = web.Application(middlewares=(*MIDDLEWARES, name_paths, admission.body_reader.middleware))
    receiver = PostReceiver(admission, stored_media, enqueuer, dry_runner)
    app.router.add_post("/v1/posts", receiver.receive)
    app.router.add_post("/v1/posts/{endpoint_id}", receiver.receive)  # signed
    app.router.add_get("/openapi.json", serve_document)
    return app


class Taken(Struct, frozen=True, kw_only=True):
    """A post that the database has decided about."""

    request: PostRequest
    normalized: Normalized
    verdict: Verdict
    marks: tuple[PostWarning, ...]


class PostReceiver:
    def __init__(
        self, admission: Admission, stored_media: StoredMedia, enqueuer: Enqueuer, dry_runner: DryRunner
    ) -> None:
        self._admission = admission
        self._stored_media = stored_media
        self._enqueuer = enqueuer
        self._dry_runner = dry_runner
        self._gateway = admission.gateway
        self._explainer = Explainer(dry_runner, admission.gateway)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        query = request.query if request.query_string else {}
        if "dry_run" in query:
            return await self._dry_runner.receive(request)
        endpoint = await self._admission.endpoint_of(request)
        async with self._admission.accounted(request, endpoint):
            check_query(query, {})
            post = await self._admission.body_of(request, endpoint)
            taken = await self.take(endpoint, post)
        return await self.answer(request, endpoint, taken)

    async def take(self, endpoint: Endpoint, post: PostRequest, admit: Admit | None = None) -> Taken:
        """Must be called inside ``accounted``."""
        normalized = await self._enqueuer.offload.normalize(endpoint.workspace_id, post)
        post = await find_channels(self._gateway, endpoint.workspace_id, post, normalized.channel_tags)
        marks = await self._enqueuer.offload.unclosed_marks(endpoint.workspace_id, normalized.content)
        if normalized.content.media:
            normalized = await self._stored_media.look_up(endpoint.workspace_id, normalized)
        await self._explainer.check(endpoint, post, normalized)
        verdict = await self._enqueue(endpoint, post, normalized, admit)
        return Taken(request=post, normalized=normalized, verdict=verdict, marks=mark_warnings(marks))

    async def answer(self, request: web.Request, endpoint: Endpoint, taken: Taken) -> WholeResponse:
        if taken.verdict.verdict == "workspace_paused":
            await self._admission.report_inactive(endpoint, "paused")
        reach = await self._explainer.explain(endpoint, taken.request, taken.normalized, taken.verdict)
        return _answer(endpoint, taken.verdict, request, taken.normalized.tags, reach, taken.marks)

    async def _enqueue(
        self, endpoint: Endpoint, post: PostRequest, normalized: Normalized, admit: Admit | None
    ) -> Verdict:
        try:
            return await self._enqueuer.enqueue(endpoint, post, normalized, admit)
        except ProfilesUnsettled:
            raise HttpProblem(
                503, "Service Unavailable", "channels are being changed, retry later", headers={"Retry-After": "1"}
            ) from None


def _answer(
    endpoint: Endpoint,
    verdict: Verdict,
    request: web.Request,
    tags: tuple[str, ...],
    reach: Reach,
    marks: tuple[PostWarning, ...],
) -> WholeResponse:
    posts.add(1, {"verdict": verdict.verdict})
    warnings = (*tag_warnings(verdict.first_tags, tags), *reach.warnings, *marks)
    match verdict.verdict:
        case "accepted":
            return _json(202, _accepted(verdict, warnings))
        case "refused":
            raise refuse("unreachable", unreachable(reach, verdict))
        case "staged":  # its message is created when its media is fetched; see GET /v1/posts/{post_id}
            ids = {"post_id": verdict.post_id, "run_id": verdict.run_id, "message_id": None}
            return _json(202, {"status": "staged", **ids} | ({"warnings": warnings} if warnings else {}))
        case "duplicate":
            refuse("dedup_dropped", HttpProblem(200, "duplicate"))
            first = {"run_id": verdict.first_run_id, "post_id": verdict.post_id}
            return _json(200, {"status": "duplicate", "of": verdict.of, **first})
        case "rate_limited":
            raise rate_limited(endpoint, timedelta(milliseconds=verdict.retry_after_ms))
        case "workspace_paused" | "workspace_disabled":
            raise inactive(verdict.verdict.removeprefix("workspace_"))
        case "endpoint_disabled":  # still in the endpoint cache; the database decides
            raise unknown(request)
        case "missing_profiles":
            raise RuntimeError("the enqueuer settles missing profiles itself")


def _accepted(verdict: Verdict, warnings: tuple[PostWarning, ...]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "status": "accepted",
        "message_id": verdict.message_id,
        "run_id": verdict.run_id,
        "new": verdict.new,
        "channels": verdict.counts,
    }
    if warnings:
        answer["warnings"] = warnings
    return answer


def _json(status: int, body: dict[str, Any]) -> WholeResponse:
    body["trace_id"] = telemetry.current_trace_id()
    return WholeResponse(status, msgspec.json.encode(body))
