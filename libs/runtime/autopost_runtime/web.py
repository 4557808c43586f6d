"""What our HTTP services share: a span per request, refusals as problem+json, bodies read with limits.

An error body says what the caller can act on. Anything unexpected is a 500 with the trace id and nothing else:
no stack trace, no SQL, no path.
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

from autopost_runtime import metrics, telemetry
from autopost_runtime.database_errors import is_retryable
from autopost_runtime.http_server import Guests, Handler, Runner
from autopost_runtime.logs import get_logger
from autopost_runtime.problem import Problem as Problem
from autopost_runtime.problem import respond

RETRY_AFTER = timedelta(seconds=2)
STOP_LIMIT = timedelta(seconds=5)
HEAD_TIMEOUT = timedelta(seconds=10)
CONNECTIONS = 800
CONNECTIONS_PER_ADDRESS = 400
"""Below the thousand files that many systems give a process."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_requests = metrics.histogram("autopost_http_requests_seconds", "How long our HTTP answers took.")


@lru_cache(maxsize=1024)
def _series(method: str, route: str, status: int) -> metrics.Series:
    return _requests.of({"method": method, "route": route, "status": status})


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A SERVER span that goes on with the caller's trace, and the latency histogram."""
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
    except Problem as problem:
        return respond(problem)
    except web.HTTPException as exc:
        if exc.status < 400:
            raise
        exc.with_traceback(None)  # the request holds it: its frames would hold the request, and a body that nobody read
        allow = {"Allow": exc.headers["Allow"]} if "Allow" in exc.headers else None
        return respond(Problem(exc.status, exc.reason, headers=allow))
    except Exception as exc:
        return respond(_unexpected(request, exc))
    finally:
        request.pop(READ, None)  # an idle connection holds its last request


MIDDLEWARES = (observe, problems)
"""In this order: the span is open while a problem is written."""


READ = web.RequestKey("read", bytes)
"""What has been read of a body, also of one that is refused; gone once there is an answer."""


async def read_limited(
    request: web.Request,
    limit: int,
    within: timedelta,
    idle: timedelta | None = None,
    *,
    take: Callable[[int], None] = lambda _: None,
) -> bytes:
    """The body, whatever Content-Length claims, all of it ``within`` and no pause longer than ``idle``.

    ``take`` is told the size of each piece before it is kept, and may raise. Raises ``Problem`` 400, 408, 413 or 415:
    an encoded body could be a bomb.
    """
    if "Content-Encoding" in request.headers:
        raise Problem(415, "Unsupported Media Type", "Content-Encoding is not accepted", field="Content-Encoding")
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
        raise Problem(415, "Unsupported Media Type", "only chunked is accepted", field="Transfer-Encoding")
    if (request.content_length or 0) > limit:
        raise too_big(limit)
    body: bytes | bytearray = bytearray()
    try:
        if request.content.is_eof():  # it came with its head, as most do: nothing to wait for
            chunk = request.content.read_nowait()
            take(len(chunk))
            body = chunk
        else:
            async with asyncio.timeout(within.total_seconds()):
                while len(body) <= limit and (chunk := await _next_piece(request, idle or within)):
                    take(len(chunk))
                    body += chunk
    except TimeoutError:
        raise Problem(408, "Request Timeout", "the body came too slowly") from None
    except (web.RequestPayloadError, ConnectionError):
        raise Problem(400, "Bad Request", "the body ended early or is not framed as its headers say") from None
    finally:
        request[READ] = bytes(body)
    if len(body) > limit:
        raise too_big(limit)
    return request[READ]


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
        """Takes no new connection and lets running requests finish, for a while."""
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
        guests=Guests(connections, connections_per_address),
        auto_decompress=False,  # an encoded body is refused, so nobody may unpack it first
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


def too_big(limit: int) -> Problem:
    return Problem(413, "Content Too Large", f"the body may have at most {limit} bytes")


def _unexpected(request: web.Request, exc: Exception) -> Problem:
    log = get_logger(method=request.method, route=_route(request))
    if is_retryable(exc):
        log.warning("http.database_away", exc_info=exc)
        retry = {"Retry-After": str(int(RETRY_AFTER.total_seconds()))}
        return Problem(503, "Service Unavailable", "try again in a moment", headers=retry)
    log.error("http.failed", exc_info=exc)
    trace.get_current_span().set_attribute("error.type", type(exc).__qualname__)
    return Problem(500, "Internal Server Error", "the trace id names this failure in our logs")
