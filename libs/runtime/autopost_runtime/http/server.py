"""The HTTP server: aiohttp with our own error responses, limits and routing. Only this module uses private names of
aiohttp.

Malformed requests get 400 and are counted; they are neither echoed nor logged, because the header that cannot be parsed
may be the one with the secret. An incomplete request head gets 408, also on a connection that never sends one; between
two requests a connection may be idle. Connections over the limit get 503.

The private names save time on every request (benchmark bar "posts to one channel ÷ bare commits") or replace a missing
public API: the timer for a slow head, the response to malformed requests and the header limits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11
from aiohttp.web_protocol import RequestHandler, _ErrInfo
from aiohttp.web_urldispatcher import PlainResource, UrlMappingMatchInfo

from autopost_runtime.http.connection_limits import HEAD_TOO_SLOW, TOO_MANY_CONNECTIONS, ConnectionLimits, address_of
from autopost_runtime.http.problem import SERVER, HttpProblem, respond
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

BIGGEST_HEADER = 8190
MOST_HEADERS = 100
_REASONS = {status.value: status.phrase for status in HTTPStatus}


_unreadable = metrics.counter(
    "autopost_http_unreadable_total", "Connections closed before a complete request, by reason."
)


class HttpConnection(RequestHandler):
    def __init__(
        self, manager: web.Server, *, head_timeout: timedelta, connection_limits: ConnectionLimits, **options: Any
    ) -> None:
        super().__init__(manager, **options)
        self._head_timeout = head_timeout.total_seconds()
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_deadline: float | None = None
        """Deadline of the request head; ``None`` when none is awaited."""
        self._head_begun = False
        self._connection_limits = connection_limits
        self._address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        address = address_of(transport)
        if not self._connection_limits.acquire(address):
            _refuse(cast(asyncio.Transport, transport))
            return
        self._address = address
        super().connection_made(transport)
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._messages:
            self._drop_traceback()
            self._clear_head_deadline()
        elif self._request_in_progress:
            self._clear_head_deadline()
        elif data and not self._head_begun and self._between_requests():
            self._start_head_timer()
            self._head_begun = True

    def connection_lost(self, exc: BaseException | None) -> None:
        self._clear_head_deadline()
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._connection_limits.release(self._address)
        super().connection_lost(exc)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """aiohttp calls this after every body, also when reading was never paused."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    async def _handle_request(self, *given: Any) -> tuple[web.StreamResponse, bool]:
        try:
            return await super()._handle_request(*given)
        finally:
            if self._messages:
                self._drop_traceback()
            elif self.transport is not None:
                self._start_head_timer()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            get_logger().error("http.failed", exc_info=exc)
            detail = ""
        else:
            _unreadable.add(1, {"reason": "malformed"})
            detail = "malformed HTTP request, or the request head is too large"
        response = respond(HttpProblem(status, HTTPStatus(status).phrase, detail))
        response.headers[hdrs.SERVER] = SERVER
        response.force_close()
        return response

    def _drop_traceback(self) -> None:
        """Drop the traceback: its frames refer to the error and to the received bytes, a cycle until the next
        collection."""
        if isinstance(error := self._messages[-1][0], _ErrInfo):
            error.exc.with_traceback(None)

    def _between_requests(self) -> bool:
        """False while the body of an answered request still arrives: aiohttp waits a second for it."""
        return not self._messages and self._waiter is not None

    def _start_head_timer(self) -> None:
        self._head_begun = False
        self._head_deadline = self._loop.time() + self._head_timeout
        if self._head_timer is None:
            self._head_timer = self._loop.call_at(self._head_deadline, self._check_head_timer)

    def _clear_head_deadline(self) -> None:
        """The timer keeps running and checks ``_head_deadline``: cheaper than a new timer for each request."""
        self._head_begun = False
        self._head_deadline = None

    def _check_head_timer(self) -> None:
        self._head_timer = None
        if self._head_deadline is None or self.transport is None:
            return
        if not self._between_requests():
            self._start_head_timer()
            return
        if self._loop.time() < self._head_deadline:
            self._head_timer = self._loop.call_at(self._head_deadline, self._check_head_timer)
            return
        if self._request_count and not self._head_begun and not self._parser_has_partial_head():
            return  # idle between two requests
        _unreadable.add(1, {"reason": "slow_head"})
        self.transport.write(HEAD_TOO_SLOW)
        self.force_close()

    def _parser_has_partial_head(self) -> bool:
        """True when the start of a head arrived together with the request before. The check ends the parser if so."""
        try:
            return self._parser is not None and self._parser.feed_eof() is not None
        except Exception:  # the parser reports an incomplete head as an error
            return True


def _refuse(transport: asyncio.Transport) -> None:
    _unreadable.add(1, {"reason": "crowded"})
    transport.set_protocol(asyncio.Protocol())  # aiohttp never sees this connection
    transport.write(TOO_MANY_CONNECTIONS)
    transport.close()


class WholeResponse(web.StreamResponse):
    """A response written in one piece, head and body together. Not for HEAD requests; ``headers`` are ignored.

    aiohttp's own response costs more than sending these few hundred bytes. The bytes on the wire are the same.
    """

    def __init__(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        super().__init__(status=status, reason=_REASONS[status])
        self._content = body
        self._kind = content_type

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        writer = self._payload_writer = request.writer
        await writer.write(self._head(request).encode() + self._content)
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        if self._payload_writer is not None:
            await self._payload_writer.write_eof(data)
            self._eof_sent, self._payload_writer = True, None

    def _head(self, request: web.BaseRequest) -> str:
        version = request.version
        connection = ""
        if version != HttpVersion11 and self._keep_alive:
            connection = "Connection: keep-alive\r\n"
        elif version == HttpVersion11 and not self._keep_alive:
            connection = "Connection: close\r\n"
        return (
            f"HTTP/{version.major}.{version.minor} {self._status} {self._reason}\r\n"
            f"Content-Type: {self._kind}\r\nContent-Length: {len(self._content)}\r\n"
            f"Date: {rfc822_formatted_time()}\r\nServer: {SERVER}\r\n{connection}\r\n"
        )


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RouteTable:
    """Finds the handler of a path without variables in one dict look-up, with its middlewares already applied.

    aiohttp's router tries one route after the other and wraps the middlewares anew for each request.
    """

    def __init__(self, app: web.Application) -> None:
        self._app = app
        self._known = dict(_known_routes(app))

    async def handle(self, request: Any) -> web.StreamResponse:
        known = self._known.get((request.method, request.rel_url.raw_path))
        if known is None or hdrs.EXPECT in request.headers:
            return await self._app._handle(request)
        request._match_info, handler = known
        return await handler(request)


def _known_routes(app: web.Application) -> Iterator[tuple[tuple[str, str], tuple[UrlMappingMatchInfo, Handler]]]:
    for resource in app.router.resources():
        for route in resource if isinstance(resource, PlainResource) else ():
            match = UrlMappingMatchInfo({}, route)
            match.add_app(app)
            match.freeze()
            handler: Any = route.handler
            for middleware in reversed(app.middlewares):
                handler = partial(middleware, handler=handler)
            yield (route.method, resource.canonical), (match, handler)


class Runner(web.AppRunner):
    """Accepts the options of ``AppRunner``, ``head_timeout`` and ``connection_limits``."""

    def __init__(self, app: web.Application, **options: Any) -> None:
        app.on_response_prepare.append(_sign)
        super().__init__(app, **options)

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        server = _Server(RouteTable(self.app).handle, request_factory=plain.request_factory)
        server._kwargs = {**plain._kwargs, "max_field_size": BIGGEST_HEADER, "max_headers": MOST_HEADERS}
        return server


async def _sign(_: web.Request, response: web.StreamResponse) -> None:
    response.headers[hdrs.SERVER] = SERVER


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return HttpConnection(self, loop=self._loop, **self._kwargs)
