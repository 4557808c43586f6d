"""HTTP client for providers, with errors that say whether a request can have arrived.

``NotSent``: the request never left. ``Unanswered``: it may have arrived. Telegram has its token in the URL, so no
exception, span or log line from here may contain a URL; errors of aiohttp are dropped before ours are raised.

An error of a streamed body before its end is raised unchanged: the connection is closed, and no provider accepts a
partial body. A response that arrives before the body was sent is a normal response.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import cache, lru_cache
from pathlib import Path
from time import time_ns
from typing import Any, Self

import aiohttp
import msgspec
from opentelemetry.trace import SpanKind, StatusCode
from yarl import URL

from autopost_runtime.config.env_values import is_host
from autopost_runtime.fetch.tls import trusting
from autopost_runtime.http.raw_request import RawRequests, ResponseTooLarge, read_all
from autopost_runtime.http.request_body import StreamedBody, StreamedPayload
from autopost_runtime.telemetry import tracing as telemetry

ANSWER_LIMIT = 1024 * 1024
CONNECT_LIMIT = timedelta(seconds=10)
IDLE_LIMIT = timedelta(seconds=15)
"""Shorter than any platform's limit, so that we rarely write to a connection that is being closed."""

_encode = msgspec.json.Encoder().encode


class HttpAnswer(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpError(Exception):
    """``code`` is the reason in one word."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class NotSent(HttpError):  # noqa: N818  named for what happened
    """The request never left and had no effect."""


class Unanswered(HttpError):  # noqa: N818  named for what happened
    """The request may have arrived and may have had its effect."""


class HttpClient:
    """Keeps connections; follows no redirects, keeps no cookies, ignores proxies of the environment."""

    def __init__(self, *, limit: int = 100, ca_bundle: Path | None = None, answer_limit: int = ANSWER_LIMIT) -> None:
        self._limit = limit
        self._ca_bundle = ca_bundle
        self._answer_limit = answer_limit
        self._session: aiohttp.ClientSession | None = None
        self._exchange: RawRequests | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            limit=self._limit,
            ssl=trusting(self._ca_bundle),
            ttl_dns_cache=60,
            keepalive_timeout=IDLE_LIMIT.total_seconds(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "autopost"},
            trust_env=False,
        )
        self._exchange = RawRequests(self._session, self._answer_limit)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        body: StreamedBody | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: timedelta,
        span_name: str | None = None,
        template: str | None = None,
    ) -> HttpAnswer:
        """``template`` is the path without secrets; only it is recorded in the span."""
        started, status, error = time_ns(), None, "cancelled"
        target = _parse(url)
        sending: Any = StreamedPayload(body) if body else _body(json, form)
        try:
            answer = await self._call(method, target, sending, _headers(json, headers), timeout)
            status, error = answer.status, str(answer.status)
            return answer
        except HttpError as exc:
            error = exc.code
            raise
        except Exception as exc:
            error = type(exc).__name__
            raise
        finally:
            if telemetry.exporting():
                _trace(started, span_name or method, template, method, target.host, status, error)

    async def _call(
        self, method: str, url: URL, body: Any, headers: Mapping[str, str] | None, timeout: timedelta
    ) -> HttpAnswer:
        if self._session is None or self._exchange is None:
            raise RuntimeError("the client must be used inside its async with")
        try:
            if isinstance(body, bytes) and url.raw_user is None:
                return HttpAnswer(*await self._exchange.send(method, url, body, headers or {}, _limits(timeout)))
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False, timeout=_limits(timeout)
            ) as response:
                content = await read_all(response.content, self._answer_limit)
                return HttpAnswer(response.status, response.headers, content)
        except ResponseTooLarge:
            lost: HttpError = Unanswered("answer_too_big")
        except aiohttp.ClientError as exc:
            lost = _translate(exc)
        except TimeoutError:  # the connect limit is shorter, so the request may have been sent
            lost = Unanswered("read_timeout")
        except OSError as exc:
            lost = Unanswered(type(exc).__name__)
        if isinstance(body, StreamedPayload) and body.failure is not None:
            raise body.failure
        late = isinstance(body, StreamedPayload) and body.failed_late
        raise (Unanswered("source_failed") if late else lost) from None


def _trace(
    started: int, name: str, template: str | None, method: str, host: str | None, status: int | None, error: str
) -> None:
    """One CLIENT span, created after the call; cheaper than a span that is opened before it."""
    attributes: dict[str, str | int] = {"http.request.method": method, "server.address": host or ""}
    if template:
        attributes["url.template"] = template
    if status is not None:
        attributes["http.response.status_code"] = status
    failed = status is None or status >= 400
    if failed:
        attributes["error.type"] = error
    span = telemetry.tracer().start_span(name, kind=SpanKind.CLIENT, attributes=attributes, start_time=started)
    if failed:
        span.set_status(StatusCode.ERROR, error)
    span.end()


def _translate(exc: aiohttp.ClientError) -> HttpError:
    match exc:
        case aiohttp.ConnectionTimeoutError():  # also when no connection of the pool became free
            return NotSent("connect_timeout")
        case aiohttp.ClientConnectorDNSError():
            return NotSent("dns")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return NotSent("tls")
        case aiohttp.ClientConnectorError():
            return NotSent("connect")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return NotSent("invalid_url")
        case aiohttp.ServerTimeoutError():
            return Unanswered("read_timeout")
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | aiohttp.ClientConnectionResetError():
            return Unanswered("reset")
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return Unanswered("bad_framing")
        case _:
            return Unanswered(type(exc).__name__)


@lru_cache(maxsize=1024)
def _parse(url: str) -> URL:
    try:
        parsed = URL(url, encoded=True)
        sound = parsed.scheme in ("http", "https") and parsed.port and is_host(parsed.host or "")
    except ValueError:
        sound = False
    if not sound:
        raise NotSent("invalid_url") from None
    return parsed


@cache
def _limits(timeout: timedelta) -> aiohttp.ClientTimeout:
    """Connecting gets at most half of the time: a total that expires while connecting would look like a lost
    response."""
    total = timeout.total_seconds()
    return aiohttp.ClientTimeout(total=total, connect=min(total / 2, CONNECT_LIMIT.total_seconds()))


def _body(json: Any, form: Mapping[str, str] | None) -> Any:
    return _encode(json) if json is not None else form


def _headers(json: Any, headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return {"Content-Type": "application/json", **(headers or {})} if json is not None else headers
