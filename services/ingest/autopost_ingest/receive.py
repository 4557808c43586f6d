"""Receive a post over HTTP and answer what became of it, after the commit and never before."""

from datetime import timedelta
from typing import Any

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest
from autopost_runtime import metrics, telemetry
from autopost_runtime.answer import Answer
from autopost_runtime.web import MIDDLEWARES, Problem

from autopost_ingest.admit import Admission, inactive, too_fast, unknown
from autopost_ingest.dry_run import DryRunner
from autopost_ingest.enqueue import Enqueuer, ProfilesUnsettled
from autopost_ingest.gateway import Endpoint, Verdict
from autopost_ingest.materialize import Materializer
from autopost_ingest.normalize import Normalized, normalize
from autopost_ingest.openapi import serve_document
from autopost_ingest.refusals import refuse

posts = metrics.counter("autopost_ingress_posts_total", "Posts taken in, by verdict.")


def application(
    admission: Admission, materializer: Materializer, enqueuer: Enqueuer, dry_runner: DryRunner
) -> web.Application:
    app = web.Application(middlewares=(*MIDDLEWARES, admission.bodies.middleware))
    receiver = Receiver(admission, materializer, enqueuer, dry_runner)
    app.router.add_post("/v1/posts", receiver.receive)
    app.router.add_post("/v1/posts/{endpoint_id}", receiver.receive)  # signed
    app.router.add_get("/openapi.json", serve_document)
    return app


class Receiver:
    def __init__(
        self, admission: Admission, materializer: Materializer, enqueuer: Enqueuer, dry_runner: DryRunner
    ) -> None:
        self._admission = admission
        self._materializer = materializer
        self._enqueuer = enqueuer
        self._dry_runner = dry_runner

    async def receive(self, request: web.Request) -> web.StreamResponse:
        query = request.query if request.query_string else {}
        if "dry_run" in query:
            return await self._dry_runner.receive(request)
        endpoint = await self._admission.endpoint_of(request)
        async with self._admission.accounted(request, endpoint):
            for name in query:
                raise Problem(400, "Bad Request", "there is no such parameter", field=name)
            post = await self._admission.body_of(request, endpoint)
            normalized = normalize(post)
            if normalized.content.media:
                normalized = await self._materializer.materialize(endpoint.workspace_id, normalized)
            verdict = await self._enqueue(endpoint, post, normalized)
        if verdict.verdict == "workspace_paused":
            await self._admission.tell_inactive(endpoint, "paused")
        return _answer(verdict, request)

    async def _enqueue(self, endpoint: Endpoint, post: PostRequest, normalized: Normalized) -> Verdict:
        try:
            return await self._enqueuer.enqueue(endpoint, post, normalized)
        except ProfilesUnsettled:
            raise Problem(
                503, "Service Unavailable", "channels are being changed; try again", headers={"Retry-After": "1"}
            ) from None


def _answer(verdict: Verdict, request: web.Request) -> Answer:
    posts.add(1, {"verdict": verdict.verdict})
    match verdict.verdict:
        case "accepted":
            return _json(202, _accepted(verdict))
        case "staged":  # its message is made when its media is fetched; GET /v1/posts/{post_id} tells
            ids = {"post_id": verdict.post_id, "run_id": verdict.run_id, "message_id": None}
            return _json(202, {"status": "staged", **ids})
        case "duplicate":
            refuse("dedup_dropped", Problem(200, "duplicate"))
            first = {"run_id": verdict.first_run_id, "post_id": verdict.post_id}
            return _json(200, {"status": "duplicate", "of": verdict.of, **first})
        case "rate_limited":
            raise too_fast(timedelta(milliseconds=verdict.retry_after_ms))
        case "workspace_paused" | "workspace_disabled":
            raise inactive(verdict.verdict.removeprefix("workspace_"))
        case "endpoint_disabled":  # it is still remembered here; the database decides
            raise unknown(request)
        case "missing_profiles":
            raise RuntimeError("the enqueuer settles missing profiles itself")


def _accepted(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": "accepted",
        "message_id": verdict.message_id,
        "run_id": verdict.run_id,
        "new": verdict.new,
        "channels": {
            "routed": verdict.routed,
            "enqueued": verdict.enqueued,
            "deduped": verdict.deduped,
            "validation_failed": verdict.validation_failed,
        },
    }


def _json(status: int, body: dict[str, Any]) -> Answer:
    body["trace_id"] = telemetry.current_trace_id()
    return Answer(status, msgspec.json.encode(body))
