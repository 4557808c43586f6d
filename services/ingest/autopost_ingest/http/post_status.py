"""``GET /v1/posts/{id}`` and ``GET /v1/posts``: what became of posts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_runtime.config.suggestions import suggest
from autopost_runtime.http.web import HttpProblem
from autopost_runtime.secrets.redaction import quoted

from autopost_ingest.admission.admit import Admission
from autopost_ingest.http.post_answers import State
from autopost_ingest.posts.post_gateway import FoundPost, Listing, PostGateway
from autopost_ingest.posts.warnings import tag_warnings

COUNTS = ("routed", "enqueued", "deduped", "validation_failed")
PARAMETERS = ("source_ref", "state", "since", "after", "limit")
MOST_LISTED = 100
LONGEST_ID = 64


class PostStatusHandler:
    """Any secret of the workspace is accepted: the one that posted may have been rotated since."""

    def __init__(self, admission: Admission, gateway: PostGateway) -> None:
        self._admission = admission.silent()
        self._gateway = gateway

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/v1/posts", self.list_)
        app.router.add_get("/v1/posts/{post_id}", self.get)

    async def get(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        await self._admission.check_rate(endpoint)
        found = await find(self._gateway, endpoint.workspace_id, request)
        return _json(_shown(await self._gateway.read_post(endpoint.workspace_id, found)))

    async def list_(self, request: web.Request) -> web.Response:
        endpoint = await self._admission.endpoint_of(request)
        await self._admission.check_rate(endpoint)
        found = await self._gateway.list_posts(endpoint.workspace_id, read_listing(request.query))
        posts = [_renamed(post) for post in found["posts"]]
        return _json({"posts": posts, "next": found["next"]})


async def find(gateway: PostGateway, workspace: Any, request: web.Request) -> FoundPost:
    """The post that the path names. Raises ``HttpProblem`` 404."""
    name = request.match_info["post_id"]
    found = await gateway.find_post(workspace, name) if len(name) <= LONGEST_ID and "\x00" not in name else None
    if found is None:
        raise HttpProblem(
            404,
            "Not Found",
            "no post with this id in this workspace; an id is that of a run, a post, a message or a trace, and "
            "GET /v1/posts?source_ref= finds a post by its source_ref",
        )
    return found


def read_listing(query: Mapping[str, str]) -> Listing:
    """Raises ``HttpProblem`` 400."""
    for name in query:
        if name not in PARAMETERS:
            raise _wrong(quoted(name), f"unknown parameter; {suggest(name, PARAMETERS)}")
    state = query.get("state")
    if state is not None and state not in get_args(State):
        raise _wrong("state", f"unknown value {quoted(state)!r}; {suggest(state, get_args(State))}")
    limit = query.get("limit", "50")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:4]) <= MOST_LISTED):
        raise _wrong("limit", f"must be a number from 1 to {MOST_LISTED}")
    ref = query.get("source_ref")
    return Listing(
        since=_moment(query.get("since")),
        before=_uuid(query.get("after")),
        source_ref=None if ref is None else quoted(ref, 256),
        state=state,
        limit=int(limit),
    )


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _wrong("since", "must be a time with a zone, as in 2026-01-31T10:00:00Z")
    return found


def _uuid(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise _wrong("after", "must be `next` of the page before") from None


def _wrong(field: str, detail: str) -> HttpProblem:
    return HttpProblem(400, "Bad Request", detail, field=field)


def _renamed(post: dict[str, Any]) -> dict[str, Any]:
    """``channels`` of an answer are the counts of its request."""
    post["outcomes"] = post.pop("channels")
    return post


def _shown(post: dict[str, Any]) -> dict[str, Any]:
    stats, staged = post.pop("stats"), post.pop("staged") or {}
    body = _renamed(post) | {
        "status": _status(staged.get("status"), stats),
        "attempt": staged.get("attempt", 0),
        "next_attempt_at": staged.get("next_attempt_at"),
        "error": staged.get("error"),
    }
    if staged:
        body |= {"accepted_at": staged["accepted_at"], "finished_at": staged["finished_at"]}
    if body["status"] in ("enqueued", "refused") and "routed" in stats:
        body["channels"] = {name: stats.get(name, 0) for name in COUNTS}
    if "first_tags" in stats:
        body["warnings"] = tag_warnings(stats["first_tags"], stats["tags"])
    return body


def _status(staged: str | None, stats: Mapping[str, Any]) -> str:
    """``fetching`` is shown as ``staged``."""
    if staged is None:
        return "refused" if "refused" in stats else "enqueued"
    return "staged" if staged == "fetching" else staged


def _json(body: dict[str, Any]) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")
