"""One connection to NATS, made in the background, with unlimited reconnects.

The library reports denied permissions only to the error callback, and the calls time out. So they are logged as
critical and counted here.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import nats.errors
from autopost_contracts.subjects import Topology
from nats.js import JetStreamContext

from autopost_runtime.config.load import NatsAccess
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.cancelling import end
from autopost_runtime.nats.access import client_for, options_for, servers_of
from autopost_runtime.nats.streams import ANYBODY, WHOLE, Part, ensure
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

PENDING_SIZE = 64 * 1024
"""Small, because data written while disconnected is sent late, after the reconnect."""

PING_INTERVAL = 10
DRAIN_LIMIT = 5.0

SECURITY = (ssl.SSLError, nats.errors.SecureConnRequiredError)
"""The certificate of the server is not trusted, or the server does not use TLS."""

_violations = metrics.counter("autopost_nats_permission_violations", "Errors reported by the NATS server.")


class NatsConnection:
    def __init__(
        self,
        url: str | None,
        topology: Topology,
        service: str,
        on_lost: Callable[[], None],
        access: NatsAccess = ANYBODY,
    ) -> None:
        self.url = url
        self.client = client_for(url, access)
        self.denials = 0
        """Permission violations so far; a call that was denied gets no response and times out."""
        self._options = options_for(access)
        self.up = asyncio.Event()
        self.connects = 0
        self._topology = topology
        self._service = service
        self._on_lost = on_lost
        self._js: JetStreamContext | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._ensuring = asyncio.Lock()
        self._closing = False
        self._reported_away = False

    @property
    def connected(self) -> bool:
        return self.up.is_set() and self.client.is_connected

    @property
    def js(self) -> JetStreamContext:
        if self._js is None:
            self._js = self.client.jetstream(timeout=5)
        return self._js

    async def ensure(self, part: Part = WHOLE) -> None:
        """Create missing streams and consumers, one caller at a time. Never raises; waits after a failure."""
        async with self._ensuring:
            try:
                await ensure(self.js, self._topology, part)
            except (nats.errors.Error, OSError) as exc:
                get_logger().warning("nats.ensure_failed", error=type(exc).__name__)
                await Backoff(timedelta(milliseconds=500)).wait()

    def start(self) -> None:
        if self.url is not None:
            self._connecting = asyncio.create_task(self._connect(self.url), name="nats connect")

    async def close(self) -> None:
        """Ignores errors: without a server, drain and close both raise."""
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
                **self._options,
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
        self.connects += 1
        self.up.set()
        self._reported_away = False
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
        text = str(exc).lower()
        if "permissions violation" in text:
            self.denials += 1
            _violations.add(1)
            get_logger().critical("nats.permission_violation", error=str(exc))
        elif "authorization" in text or isinstance(exc, SECURITY):
            if not self._reported_away:
                get_logger().critical("nats.refused", error=str(exc) or type(exc).__name__)
            self._reported_away = True
        elif not self.connected and not self._reported_away:
            self._reported_away = True
            get_logger().warning("nats.away", error=type(exc).__name__)
