"""``GET /api/chats/{chatId}/events``: the stream of a chat for an EventSource.

An EventSource gives up for ever on any status but 200. So while there is no room, no database, or the service stops,
the answer is 200 with a time to come back, and the end.
"""

import asyncio
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Self

from aiohttp import hdrs, web
from autopost_runtime.http.quotas import AtCapacity
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_bot.access.access import Access
from autopost_bot.access.parameters import BIGGEST_NUMBER, check_chat_id, read_number
from autopost_bot.stream import frames
from autopost_bot.stream.hub import Hub
from autopost_bot.stream.subscription import Subscription, dropped

LAST_EVENT_ID = "Last-Event-ID"
UNACKNOWLEDGED_LIMIT = timedelta(seconds=30)
"""A client whose machine is gone acknowledges nothing; the kernel then ends the connection."""
KERNEL_BUFFER = 64 * 1024

HEADERS = {
    hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8",
    hdrs.CACHE_CONTROL: "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}

refused = metrics.counter("autopost_chat_stream_sent_away_total", "Streams that were told to come back, by reason.")


class StreamTimes(Struct, frozen=True, kw_only=True):
    keep_alive: timedelta = timedelta(seconds=15)
    lifetime: timedelta = timedelta(hours=1)
    """Plus or minus a tenth, so that clients do not come back all at once."""
    come_back: timedelta = timedelta(seconds=15)
    """For who is sent away."""

    def drawn_lifetime(self) -> float:
        return self.lifetime.total_seconds() * random.uniform(0.9, 1.1)  # noqa: S311  no secret


class EventStream(web.StreamResponse):
    """Sends events until the end. They are sent after the handler has returned: its span ends with the headers, and its
    latency is that of the first byte."""

    def __init__(self, subscription: Subscription, times: StreamTimes, leave: Callable[[], None]) -> None:
        super().__init__(headers=HEADERS)
        self._subscription = subscription
        self._times = times
        self._leave = leave
        self.force_close()

    async def begin(self, request: web.Request, first: bytes) -> Self:
        """Headers and first bytes. A client that is gone already is noticed again at the end."""
        try:
            _prepare_socket(request)
            await self.prepare(request)
            await self.write(first)
        except ConnectionError:
            self._subscription.close()
            self._leave()  # without headers the end never comes
        except BaseException:
            self._leave()
            raise
        return self

    async def write_eof(self, data: bytes = b"") -> None:
        try:
            await self._send_events()
            await super().write_eof()
        except ConnectionError:
            dropped.add(1, {"reason": "gone"})
            raise
        finally:
            self._leave()

    async def _send_events(self) -> None:
        now = asyncio.get_running_loop().time
        keep_alive, end = self._times.keep_alive.total_seconds(), now() + self._times.drawn_lifetime()
        while (left := end - now()) > 0:
            waiting = await self._subscription.next(min(keep_alive, left))
            if waiting is None:
                return
            await self.write(waiting or frames.KEEP_ALIVE)


class ChatStream:
    def __init__(self, access: Access, hub: Hub, most: int, times: StreamTimes | None = None) -> None:
        self._access = access
        self._hub = hub
        self._most = most
        self._times = times or StreamTimes()

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/api/chats/{chat_id:[^/]+}/events", self.open, allow_head=False)

    async def open(self, request: web.Request) -> web.StreamResponse:
        chat_id = check_chat_id(request.match_info["chat_id"])
        after = _last_number(request)
        if self._hub.closed:
            return await self._send_away(request, "stopping")
        try:
            endpoint = await self._access.listener(request, chat_id)
            if endpoint.workspace_status == "disabled":
                return web.Response(status=204)
            workspace = endpoint.workspace_id
            if not self._hub.has_room(workspace, self._most):
                return await self._send_away(request, "full")
            subscription, first = await self._hub.join(workspace, chat_id, after, lambda: _abort(request))
        except AtCapacity:
            return await self._send_away(request, "full")
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("chat.database_away", error=type(exc).__name__)
            return await self._send_away(request, "database")
        response = EventStream(subscription, self._times, lambda: self._hub.leave(workspace, chat_id, subscription))
        return await response.begin(request, first)

    async def _send_away(self, request: web.Request, reason: str) -> web.StreamResponse:
        refused.add(1, {"reason": reason})
        response = web.StreamResponse(headers=HEADERS)
        response.force_close()
        with suppress(ConnectionError):
            await response.prepare(request)
            await response.write(frames.retry(self._times.come_back))
        return response


def _last_number(request: web.Request) -> int | None:
    """A browser that comes back sends the header. A header that is no number of ours leads to ``resync``."""
    text = request.headers.get(LAST_EVENT_ID)
    if not text:
        return read_number(request, "after", BIGGEST_NUMBER, least=0)
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    return min(int(text), BIGGEST_NUMBER) if is_number else BIGGEST_NUMBER


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _prepare_socket(request: web.Request) -> None:
    """Bound what the kernel holds for a client that does not read, and notice one whose machine is gone."""
    connection = None if request.transport is None else request.transport.get_extra_info("socket")
    if connection is None:
        return
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            milliseconds = int(UNACKNOWLEDGED_LIMIT.total_seconds() * 1000)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
