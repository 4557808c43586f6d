"""Receive a post over HTTP and answer what became of it, after the commit and never before."""

from typing import Any

import msgspec
from aiohttp import web
from autopost_runtime import metrics, telemetry
from autopost_runtime.web import MIDDLEWARES, Problem

from autopost_ingest.admit import Admission, inactive, refuse
from autopost_ingest.enqueue import Enqueuer, ProfilesUnsettled
from autopost_ingest.gateway import Verdict
from autopost_ingest.materialize import Materializer
from autopost_ingest.normalize import Refused, normalize

BIGGEST_BODY = 16 * 1024 * 1024
"""aiohttp's own limit; the endpoint's is smaller and is the one that counts."""

posts = metrics.counter("autopost_ingress_posts_total", "Posts taken in, by verdict.")


def application(admission: Admission, materializer: Materializer, enqueuer: Enqueuer) -> web.Application:
    app = web.Application(middlewares=MIDDLEWARES, client_max_size=BIGGEST_BODY)
    app.router.add_post("/v1/posts", Receiver(admission, materializer, enqueuer).receive)
    return app


class Receiver:
    def __init__(self, admission: Admission, materializer: Materializer, enqueuer: Enqueuer) -> None:
        self._admission = admission
        self._materializer = materializer
        self._enqueuer = enqueuer

    async def receive(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        for name in request.query:
            raise refuse("malformed", Problem(400, "Bad Request", "there is no such parameter", field=name))
        post = await self._admission.body_of(request, endpoint)
        try:
            normalized = await self._materializer.materialize(endpoint.workspace_id, normalize(post))
            verdict = await self._enqueuer.enqueue(endpoint, post, normalized)
        except Refused as exc:
            raise refuse("unprocessable", Problem(422, "Unprocessable Content", exc.reason, field=exc.field)) from None
        except ProfilesUnsettled:
            raise Problem(
                503, "Service Unavailable", "channels are being changed; try again", headers={"Retry-After": "1"}
            ) from None
        return _answer(verdict)


def _answer(verdict: Verdict) -> web.Response:
    posts.add(1, {"verdict": verdict.verdict})
    match verdict.verdict:
        case "accepted":
            return _json(202, _accepted(verdict))
        case "duplicate":
            refuse("dedup_dropped", Problem(200, "duplicate"))
            return _json(200, {"status": "duplicate", "of": verdict.of, "run_id": verdict.first_run_id})
        case "rate_limited":
            seconds = max(1, -(-verdict.retry_after_ms // 1000))
            raise refuse(
                "rate_limited",
                Problem(
                    429,
                    "Too Many Requests",
                    "this endpoint takes fewer requests a second",
                    headers={"Retry-After": str(seconds)},
                ),
            )
        case "workspace_paused" | "workspace_disabled":
            raise inactive(verdict.verdict.removeprefix("workspace_"))
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


def _json(status: int, body: dict[str, Any]) -> web.Response:
    body["trace_id"] = telemetry.trace_id_of(telemetry.current_traceparent())
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
