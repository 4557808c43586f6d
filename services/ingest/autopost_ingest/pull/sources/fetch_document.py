"""Fetch a document of a source within limits, and classify failures."""

from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Protocol, Self

from autopost_runtime.fetch.fetch import Fetched, Unfetched
from msgspec import Struct

from autopost_ingest.pull.endings import PullFailed, PullRejected
from autopost_ingest.pull.source_config import Misconfigured

_INVALID_URL = frozenset({"invalid_url", "credentials_in_url", "forbidden_address"})
_UNREADABLE = frozenset({"too_large", "encoded_body"})


class Fetch(Protocol):
    def on_behalf_of(self, whose: Hashable) -> Self: ...

    async def look_up(self, host: str) -> Sequence[str]: ...

    def fetch(
        self, url: str, *, limit: int, within: timedelta, idle: timedelta, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Fetched]: ...


class Budget(Struct, frozen=True, kw_only=True):
    """The limits of one document."""

    size: int = 10 * 1024 * 1024
    within: timedelta = timedelta(seconds=30)
    idle: timedelta = timedelta(seconds=10)


class Document(Struct, frozen=True, kw_only=True):
    url: str
    """The final URL, after redirects."""
    body: bytes
    content_type: str
    etag: str | None
    last_modified: str | None


async def get(fetch: Fetch, url: str, headers: Mapping[str, str], budget: Budget) -> Document | None:
    """``None`` when it has not changed. Raises ``PullFailed``, ``PullRejected`` or ``Misconfigured``."""
    try:
        async with fetch.fetch(
            url, limit=budget.size, within=budget.within, idle=budget.idle, headers=headers
        ) as answer:
            if answer.status == 304:
                return None
            if answer.status != 200:
                raise _refusal(answer)
            return Document(
                url=str(answer.url),
                body=b"".join([chunk async for chunk in answer.chunks()]),
                content_type=answer.headers.get("Content-Type", ""),
                etag=answer.headers.get("ETag"),
                last_modified=answer.headers.get("Last-Modified"),
            )
    except Unfetched as exc:
        code = exc.code
    if code in _INVALID_URL:
        raise Misconfigured("url: must be a public http or https URL, or in a network of AUTOPOST_FETCH_ALLOW", code)
    if code in _UNREADABLE:
        raise PullRejected(code, f"the response cannot be read: {code}")
    raise PullFailed(code, f"no response: {code}")


def _refusal(answer: Fetched) -> PullFailed:
    return PullFailed(f"http_{answer.status}", f"HTTP status {answer.status}", _wait(answer.headers))


def _wait(headers: Mapping[str, str]) -> timedelta | None:
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=min(int(value), 86_400)) if len(value) < 10 else timedelta(days=1)
    try:
        return max(parsedate_to_datetime(value) - datetime.now(UTC), timedelta())
    except (ValueError, TypeError, OverflowError):
        return None
