"""Tell a sender what became of a post that was answered before its media was fetched."""

from typing import Any
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_runtime.web import Problem

from autopost_ingest.admit import Admission
from autopost_ingest.staged_gateway import Became, StagedGateway

COUNTS = ("routed", "enqueued", "deduped", "validation_failed")


class Teller:
    """Any secret of the workspace may ask: the one that posted may have been rotated since."""

    def __init__(self, admission: Admission, gateway: StagedGateway) -> None:
        self._admission = admission.silent()
        self._gateway = gateway

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/v1/posts/{post_id}", self.tell)

    async def tell(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        await self._admission.pass_bucket(endpoint)
        became = await self._gateway.read_staged_post(endpoint.workspace_id, _post_id(request))
        if became is None:
            raise _unknown()
        return web.Response(body=msgspec.json.encode(_told(became)), content_type="application/json")


def _told(became: Became) -> dict[str, Any]:
    """A post that is being fetched right now is still staged, as its sender sees it."""
    stats = became.stats or {}
    told = {
        "status": "staged" if became.status == "fetching" else became.status,
        "post_id": became.post_id,
        "run_id": became.run_id,
        "trace_id": became.trace_id,
        "message_id": became.message_id,
        "attempt": became.attempt,
        "accepted_at": became.created_at,
        "next_attempt_at": became.next_attempt_at,
        "finished_at": became.finished_at,
        "error": became.error,
    }
    if became.status == "enqueued":
        told["channels"] = {name: stats.get(name, 0) for name in COUNTS}
    return told


def _post_id(request: web.Request) -> UUID:
    try:
        return UUID(request.match_info["post_id"])
    except ValueError:
        raise _unknown() from None


def _unknown() -> Problem:
    return Problem(404, "Not Found", "this workspace has staged no such post")
