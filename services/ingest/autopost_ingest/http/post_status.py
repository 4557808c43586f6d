"""``GET /v1/posts/{post_id}``: the status of a staged post."""

from typing import Any
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_runtime.http.web import HttpProblem

from autopost_ingest.admission.admit import Admission
from autopost_ingest.posts.warnings import tag_warnings
from autopost_ingest.staging.gateway import StagedGateway, StagedPostState

COUNTS = ("routed", "enqueued", "deduped", "validation_failed")


class PostStatusHandler:
    """Any secret of the workspace is accepted: the one that posted may have been rotated since."""

    def __init__(self, admission: Admission, gateway: StagedGateway) -> None:
        self._admission = admission.silent()
        self._gateway = gateway

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/v1/posts/{post_id}", self.get)

    async def get(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        await self._admission.check_rate(endpoint)
        post = await self._gateway.read_staged_post(endpoint.workspace_id, _post_id(request))
        if post is None:
            raise _unknown()
        return web.Response(body=msgspec.json.encode(_response(post)), content_type="application/json")


def _response(post: StagedPostState) -> dict[str, Any]:
    """``fetching`` is shown as ``staged``."""
    stats = post.stats or {}
    body: dict[str, Any] = {
        "status": "staged" if post.status == "fetching" else post.status,
        "post_id": post.post_id,
        "run_id": post.run_id,
        "trace_id": post.trace_id,
        "message_id": post.message_id,
        "attempt": post.attempt,
        "accepted_at": post.created_at,
        "next_attempt_at": post.next_attempt_at,
        "finished_at": post.finished_at,
        "error": post.error,
    }
    if post.status == "enqueued":
        body["channels"] = {name: stats.get(name, 0) for name in COUNTS}
    if "first_tags" in stats:
        body["warnings"] = tag_warnings(stats["first_tags"], stats["tags"])
    return body


def _post_id(request: web.Request) -> UUID:
    try:
        return UUID(request.match_info["post_id"])
    except ValueError:
        raise _unknown() from None


def _unknown() -> HttpProblem:
    return HttpProblem(404, "Not Found", "no staged post with this id in this workspace")
