"""The answer of a simulated provider, before it becomes an HTTP response."""

from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import msgspec

from autopost_simulator.journal import Verdict

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, frozen=True, kw_only=True)
class Reply:
    status: int
    body: bytes
    verdict: Verdict
    error: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    charset: str | None = None


def accepted(body: Any) -> Reply:
    return Reply(status=200, body=_encode(body), verdict="accepted")


def refused(status: int, body: Any, error: str, retry_after: int | None = None) -> Reply:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Reply(status=status, body=_encode(body), verdict="refused", error=error, headers=headers)


def rate_limited(refusal: Reply) -> Reply:
    return replace(refusal, verdict="rate_limited")


def phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def garbage() -> Reply:
    return Reply(status=200, body=b'{"ok":tru\x00\xff\xfe', verdict="faulted", error="garbage")


def html(status: int) -> Reply:
    title = f"{status} {phrase(status)}"
    page = f"<html><head><title>{title}</title></head><body><center><h1>{title}</h1></center></body></html>"
    return Reply(
        status=status, body=page.encode(), verdict="faulted", error=title, content_type="text/html", charset="utf-8"
    )
