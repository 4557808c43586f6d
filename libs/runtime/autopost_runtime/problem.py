"""A refusal as the caller reads it: problem+json (RFC 9457) with what he can act on and nothing else."""

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web
from opentelemetry import trace


class Problem(Exception):  # noqa: N818  named for what happened
    """A refusal, as the caller will read it (RFC 9457)."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {title}")
        self.status, self.title, self.detail, self.field = status, title, detail, field
        self.headers = dict(headers or {})


def respond(problem: Problem) -> web.Response:
    body: dict[str, Any] = {"type": "about:blank", "title": problem.title, "status": problem.status}
    if problem.detail:
        body["detail"] = problem.detail
    if problem.field is not None:
        body["field"] = problem.field
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
