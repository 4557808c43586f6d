"""Error responses as problem+json (RFC 9457), with only what the caller can act on."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from aiohttp import web
from opentelemetry import trace

SERVER = "autopost"
"""The Server header: no library and no version, which would help an attacker."""


class HttpProblem(Exception):  # noqa: N818  named for what happened
    """An error response (RFC 9457)."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """``more``: extension members of RFC 9457."""
        super().__init__(f"{status} {title}")
        self.status, self.title, self.detail, self.field = status, title, detail, field
        self.headers = dict(headers or {})
        self.more = dict(more or {})


class Refusal(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """problem+json."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str | None = None
    field: str | None = None
    trace_id: str | None = None


def respond(problem: HttpProblem) -> web.Response:
    body: dict[str, Any] = {"type": "about:blank", "title": problem.title, "status": problem.status}
    if problem.detail:
        body["detail"] = problem.detail
    if problem.field is not None:
        body["field"] = problem.field
    body |= problem.more
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        body["trace_id"] = trace.format_trace_id(context.trace_id)
    response = web.Response(
        status=problem.status,
        body=msgspec.json.encode(body),
        headers=problem.headers,
        content_type="application/problem+json",
    )
    if problem.status in (408, 413, 415):
        response.force_close()  # the body was not read to its end
    return response
