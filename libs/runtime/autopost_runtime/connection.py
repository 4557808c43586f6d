"""One connection to NATS, made in the background and for ever.

Denied permissions are only a line in a callback, and calls then time out: here that line becomes an alarm.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import nats.errors
from autopost_contracts.subjects import Topology
from nats.aio.client import Client
from nats.js import JetStreamContext

from autopost_runtime import metrics
from autopost_runtime.backoff import Backoff
from autopost_runtime.cancelling import end
from autopost_runtime.logs import get_logger
from autopost_runtime.streams import ensure, servers_of

PENDING_SIZE = 64 * 1024
"""What is written while the server is away lands later, so there should not be much of it."""

PING_INTERVAL = 10
DRAIN_LIMIT = 5.0

_violations = metrics.counter("autopost_nats_permission_violations", "What the NATS server refused us.")


class Connection:
    def __init__(self, url: str | None, topology: Topology, service: str, on_lost: Callable[[], None]) -> None:
        self.url = url
        self.client = Client()
        self.up = asyncio.Event()
        self._topology = topology
        self._service = service
        self._on_lost = on_lost
        self._js: JetStreamContext | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._ensuring = asyncio.Lock()
        self._closing = False
        self._away_said = False

    @property
    def connected(self) -> bool:
        return self.up.is_set() and self.client.is_connected

    @property
    def js(self) -> JetStreamContext:
        if self._js is None:
            self._js = self.client.jetstream(timeout=5)
        return self._js

    async def ensure(self) -> None:
        """Streams and consumers anew, one caller at a time. Never raises; a pause follows every failure."""
        async with self._ensuring:
            try:
                await ensure(self.js, self._topology)
            except (nats.errors.Error, OSError) as exc:
                get_logger().warning("nats.ensure_failed", error=type(exc).__name__)
                await Backoff(timedelta(milliseconds=500)).wait()

    def start(self) -> None:
        if self.url is not None:
            self._connecting = asyncio.create_task(self._connect(self.url), name="nats connect")

    async def close(self) -> None:
        """Swallows errors: the server may be away, and then every way of leaving it raises."""
        self._closing = True
        if self._connecting is not None:
            await end([self._connecting])
        with suppress(Exception):
            await asyncio.wait_for(self.client.drain(), DRAIN_LIMIT)
        with suppress(Exception):
            await asyncio.wait_for(self.client.close(), 1)

    async def _connect(self, url: str) -> None:
        try:
            await self.client.connect(
                servers_of(url),
                name=f"autopost-{self._service}",
                inbox_prefix=f"_INBOX_{self._service}",
                max_reconnect_attempts=-1,
                reconnect_time_wait=1,
                connect_timeout=2,
                ping_interval=PING_INTERVAL,
                pending_size=PENDING_SIZE,
                flush_timeout=2,
                error_cb=self._on_error,
                disconnected_cb=self._on_down,
                reconnected_cb=self._on_up,
                closed_cb=self._on_close,
            )
        except Exception as exc:
            get_logger().error("nats.connect_failed", exc_info=exc)
            self._on_lost()
        else:
            await self._on_up()

    async def _on_up(self) -> None:
        self.up.set()
        self._away_said = False
        get_logger().info("nats.connected")

    async def _on_down(self) -> None:
        self.up.clear()
        if not self._closing:
            get_logger().warning("nats.disconnected")

    async def _on_close(self) -> None:
        self.up.clear()
        if not self._closing:
            get_logger().error("nats.closed")
            self._on_lost()

    async def _on_error(self, exc: Exception) -> None:
        if "permissions violation" in str(exc).lower():
            _violations.add(1)
            get_logger().critical("nats.permission_violation", error=str(exc))
        elif not self.connected and not self._away_said:
            self._away_said = True
            get_logger().warning("nats.away", error=type(exc).__name__)
