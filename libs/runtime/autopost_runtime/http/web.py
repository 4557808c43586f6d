"""Middlewares and limits that our HTTP services share: a span per request, problem+json, bounded bodies.

An unexpected error is a 500 with only the trace id: no stack trace, no SQL, no path.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Self

from aiohttp import web
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from autopost_runtime.http.connection_limits import ConnectionLimits
from autopost_runtime.http.problem import HttpProblem as HttpProblem
from autopost_runtime.http.problem import respond
from autopost_runtime.http.server import Handler, Runner
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger

RETRY_AFTER = timedelta(seconds=2)
STOP_LIMIT = timedelta(seconds=5)
HEAD_TIMEOUT = timedelta(seconds=10)
CONNECTIONS = 800
CONNECTIONS_PER_ADDRESS = 400
"""Below the limit of 1,024 open files of many systems."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_requests = metrics.histogram("autopost_http_requests_seconds", "Duration of HTTP responses.")


@lru_cache(maxsize=1024)
def _series(method: str, route: str, status: int) -> metrics.Series:
    return _requests.of({"method": method, "route": route, "status": status})


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Create a SERVER span in the trace of the caller and record the latency."""
    started = time.perf_counter()
    method = request.method if request.method in _METHODS else "OTHER"
    route = _route(request)
    status = 500
    with telemetry.serving(method, route, request.headers.get("traceparent")) as span:
        try:
            response = await handler(request)
            status = response.status
            return response
        finally:
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_status(StatusCode.ERROR)
            _series(method, route, status).record(time.perf_counter() - started)


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except HttpProblem as problem:
        return respond(problem)
    except web.HTTPException as exc:
        if exc.status < 400:
            raise
        exc.with_traceback(None)  # drops a reference cycle that keeps the request and an unread body in memory
        allow = {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else None
        return respond(HttpProblem(exc.status, exc.reason, headers=allow))
    except Exception as exc:
        return respond(_unexpected(request, exc))
    finally:
        request.pop(BODY, None)  # an idle connection keeps its last request


MIDDLEWARES = (observe, problems)
"""The order matters: the span is open while a problem response is created."""


BODY = web.RequestKey("read", bytes)
"""The part of the body that was read, also of a refused request; removed after the response."""


async def read_limited(
    request: web.Request,
    limit: int,
    within: timedelta,
    idle: timedelta | None = None,
    *,
    take: Callable[[int], None] = lambda _: None,
) -> bytes:
    """Read the body up to ``limit``, whatever Content-Length says, ``within`` a time and without a pause over ``idle``.

    ``take`` is called with the size of each piece before it is stored, and may raise. Raises ``HttpProblem`` 400, 408,
    413 or 415: a compressed body could expand without limit.
    """
    if "Content-Encoding" in request.headers:
        raise HttpProblem(
            415,
            "Unsupported Media Type",
            "Content-Encoding is not supported; send the body uncompressed",
            field="Content-Encoding",
        )
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        raise HttpProblem(415, "Unsupported Media Type", "Transfer-Encoding must be chunked", field="Transfer-Encoding")
    if (request.content_length or 0) > limit:
        raise body_too_large(limit)
    body: bytes | bytearray = bytearray()
    try:
        if request.content.is_eof():  # the body arrived with the head, as usual, so no timeout is needed
            chunk = request.content.read_nowait()
            take(len(chunk))
            body = chunk
        else:
            async with asyncio.timeout(within.total_seconds()):
                while len(body) <= limit and (chunk := await _next_piece(request, idle or within)):
                    take(len(chunk))
                    body += chunk
    except TimeoutError:
        raise HttpProblem(408, "Request Timeout", "the body was not received in time") from None
    except (web.RequestPayloadError, ConnectionError):
        raise HttpProblem(400, "Bad Request", "the body is incomplete or does not match its headers") from None
    finally:
        request[BODY] = bytes(body)
    if len(body) > limit:
        raise body_too_large(limit)
    return request[BODY]


async def _next_piece(request: web.Request, idle: timedelta) -> bytes:
    async with asyncio.timeout(idle.total_seconds()):
        return await request.content.readany()


class Site:
    """A running server; ``port`` is the real one."""

    def __init__(self, runner: web.AppRunner, host: str) -> None:
        self._runner = runner
        self.host = host
        self.port: int = runner.addresses[0][1]

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    async def stop(self) -> None:
        """Accept no new connections and let running requests finish within a limit."""
        await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


async def serve(
    app: web.Application,
    host: str,
    port: int,
    *,
    stop_limit: timedelta = STOP_LIMIT,
    head_timeout: timedelta = HEAD_TIMEOUT,
    connections: int = CONNECTIONS,
    connections_per_address: int = CONNECTIONS_PER_ADDRESS,
) -> Site:
    runner = Runner(
        app,
        access_log=None,
        shutdown_timeout=stop_limit.total_seconds(),
        lingering_time=1.0,
        keepalive_timeout=30.0,
        head_timeout=head_timeout,
        connection_limits=ConnectionLimits(connections, connections_per_address),
        auto_decompress=False,  # an encoded body is refused, so it must not be decompressed first
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
    except BaseException:
        await runner.cleanup()
        raise
    return Site(runner, host)


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "unmatched"


def body_too_large(limit: int) -> HttpProblem:
    return HttpProblem(413, "Content Too Large", f"the body must not be larger than {limit} bytes")


def _unexpected(request: web.Request, exc: Exception) -> HttpProblem:
    log = get_logger(method=request.method, route=_route(request))
    if is_retryable(exc):
        log.warning("http.database_away", exc_info=exc)
        retry = {"Retry-After": str(int(RETRY_AFTER.total_seconds()))}
        return HttpProblem(503, "Service Unavailable", "the database is not available, retry later", headers=retry)
    log.error("http.failed", exc_info=exc)
    trace.get_current_span().set_attribute("error.type", type(exc).__qualname__)
    return HttpProblem(500, "Internal Server Error", "internal error; report the trace id to the operator")
