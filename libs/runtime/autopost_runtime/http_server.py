"""aiohttp's server, with our answers to what never becomes a request.

Bytes that are no HTTP are answered 400 in words of ours and counted. They are neither sent back nor logged: the
header that cannot be read may be the one with the secret. A head that does not come to its end is answered 408, and so
is a connection that never begins one; between two requests a connection may rest. Connections over a number, of all or
of one address, are answered 503.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestHandler, _ErrInfo
from aiohttp.web_urldispatcher import PlainResource, UrlMappingMatchInfo

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.problem import Problem, respond

BIGGEST_HEADER = 8190
MOST_HEADERS = 100


def _last_words(problem: Problem) -> bytes:
    """The whole answer: where there is no request, aiohttp gives none."""
    body = cast(bytes, respond(problem).body)
    told = {**problem.headers, "Content-Type": "application/problem+json", "Content-Length": len(body)}
    lines = [f"HTTP/1.1 {problem.status} {problem.title}", *(f"{name}: {value}" for name, value in told.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


LATE = _last_words(Problem(408, "Request Timeout", "the head of a request did not come to its end"))
FULL = _last_words(
    Problem(503, "Service Unavailable", "too many connections are open; try again", headers={"Retry-After": "1"})
)

_unreadable = metrics.counter("autopost_http_unreadable_total", "Connections given up before a request, by reason.")


class Guests:
    """Who is connected, by address."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._here: Counter[str] = Counter()
        self._all = 0

    def come(self, address: str) -> bool:
        """False when there is no room; whoever came must ``leave``."""
        if self._all >= self._most or self._here[address] >= self._most_of_one:
            return False
        self._all += 1
        self._here[address] += 1
        return True

    def leave(self, address: str) -> None:
        self._all -= 1
        self._here[address] -= 1
        if not self._here[address]:
            del self._here[address]


class Connection(RequestHandler):
    def __init__(self, manager: web.Server, *, head_timeout: timedelta, guests: Guests, **options: Any) -> None:
        super().__init__(manager, **options)
        self._head_timeout = head_timeout.total_seconds()
        self._late: asyncio.TimerHandle | None = None
        self._due: float | None = None
        """When the head that is waited for is late."""
        self._head_begun = False
        self._guests = guests
        self._address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        address = _address(transport)
        if not self._guests.come(address):
            _turn_away(cast(asyncio.Transport, transport))
            return
        self._address = address
        super().connection_made(transport)
        self._wait_for_a_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._messages:
            self._forget_where_it_failed()
            self._in_time()
        elif self._request_in_progress:
            self._in_time()
        elif data and not self._head_begun and self._between_requests():
            self._wait_for_a_head()
            self._head_begun = True

    def connection_lost(self, exc: BaseException | None) -> None:
        self._in_time()
        if self._late is not None:
            self._late.cancel()
        self._guests.leave(self._address)
        super().connection_lost(exc)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Asked for after every body, also of a connection that was never paused."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    async def _handle_request(self, *given: Any) -> tuple[web.StreamResponse, bool]:
        try:
            return await super()._handle_request(*given)
        finally:
            if self._messages:
                self._forget_where_it_failed()
            elif self.transport is not None:
                self._wait_for_a_head()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is under way already")
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            get_logger().error("http.failed", exc_info=exc)
            detail = ""
        else:
            _unreadable.add(1, {"reason": "malformed"})
            detail = "this is not HTTP as we read it, or its head is too large"
        response = respond(Problem(status, HTTPStatus(status).phrase, detail))
        response.force_close()
        return response

    def _forget_where_it_failed(self) -> None:
        """Or the error would hold the frame that holds it, and with it what came, until the collector looks for it."""
        if isinstance(error := self._messages[-1][0], _ErrInfo):
            error.exc.with_traceback(None)

    def _between_requests(self) -> bool:
        """Not while the body of a request that is answered already still comes: aiohttp waits for a second for that."""
        return not self._messages and self._waiter is not None

    def _wait_for_a_head(self) -> None:
        self._head_begun = False
        self._due = self._loop.time() + self._head_timeout
        if self._late is None:
            self._late = self._loop.call_at(self._due, self._give_up)

    def _in_time(self) -> None:
        """The timer runs on: one for each request would cost more than one that looks when it is really due."""
        self._head_begun = False
        self._due = None

    def _give_up(self) -> None:
        self._late = None
        if self._due is None or self.transport is None:
            return
        if not self._between_requests():
            self._wait_for_a_head()
            return
        if self._loop.time() < self._due:
            self._late = self._loop.call_at(self._due, self._give_up)
            return
        if self._request_count and not self._head_begun and not self._parser_holds_a_beginning():
            return  # it rests between two requests
        _unreadable.add(1, {"reason": "slow_head"})
        self.transport.write(LATE)
        self.force_close()

    def _parser_holds_a_beginning(self) -> bool:
        """Bytes that came in one piece with the end of the request before; asking ends the parser, if it holds any."""
        try:
            return self._parser is not None and self._parser.feed_eof() is not None
        except Exception:  # half a head makes no sense to it
            return True


def _address(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""


def _turn_away(transport: asyncio.Transport) -> None:
    _unreadable.add(1, {"reason": "crowded"})
    transport.set_protocol(asyncio.Protocol())  # it never was a connection of the server's
    transport.write(FULL)
    transport.close()


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Switchboard:
    """Where a request goes whose path has no variables is looked up, and its middlewares were put around it before.

    A router that tries one route after the other, for each request anew, was a tenth of what taking in a post cost.
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
    """Takes the options of ``AppRunner``, ``head_timeout`` and ``guests``."""

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        server = _Server(Switchboard(self.app).handle, request_factory=plain.request_factory)
        server._kwargs = {**plain._kwargs, "max_field_size": BIGGEST_HEADER, "max_headers": MOST_HEADERS}
        return server


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)
