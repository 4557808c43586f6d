"""aiohttp's server, with our answers to what never becomes a request.

Bytes that are no HTTP are answered 400 in words of ours and counted. They are neither sent back nor logged: the
header that cannot be read may be the one with the secret. A head that does not come to its end is answered 408.
"""

import asyncio
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.problem import Problem, respond

BIGGEST_HEADER = 8190
MOST_HEADERS = 100

LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

_unreadable = metrics.counter("autopost_http_unreadable_total", "Connections given up before a request, by reason.")


class Connection(RequestHandler):
    def __init__(self, manager: web.Server, *, head_timeout: timedelta, **options: Any) -> None:
        super().__init__(manager, **options)
        self._head_timeout = head_timeout.total_seconds()
        self._late: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._between_requests():
            self._in_time()
        elif data and self._late is None:
            self._late = self._loop.call_later(self._head_timeout, self._give_up)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._in_time()
        super().connection_lost(exc)

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

    def _between_requests(self) -> bool:
        return not self._messages and not self._request_in_progress

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if self.transport is not None and self._between_requests():
            _unreadable.add(1, {"reason": "slow_head"})
            self.transport.write(LATE)
            self.force_close()


class Runner(web.AppRunner):
    """Takes the options of ``AppRunner`` and ``head_timeout``."""

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        server = _Server(plain.request_handler, request_factory=plain.request_factory)
        server._kwargs = {**plain._kwargs, "max_field_size": BIGGEST_HEADER, "max_headers": MOST_HEADERS}
        return server


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)
