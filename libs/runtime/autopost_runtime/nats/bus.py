"""The bus sends and receives wakeups and publishes events. Correctness must never depend on it.

It connects in the background; a service starts, works and stays ready without it. A wakeup has no id and no ack.
A publish has an id. Its outcome is unknown after a timeout: publish again with the same id, the stream stores it once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import nats.errors
import nats.js.errors
from autopost_contracts.subjects import ConsumerSpec, Topology
from nats.aio.msg import Msg
from nats.js import api

from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.lifecycle.cancelling import end, heed
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.connection import NatsConnection
from autopost_runtime.nats.ordered_publisher import NotPublished, OrderedPublisher, PublishUnknown
from autopost_runtime.nats.pull_consumer import Done, Handler, Later, Message, Poison, Pull, Settler, Verdict
from autopost_runtime.nats.streams import BusUnavailable, Drift, ensure_streams
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger

__all__ = [
    "Bus",
    "BusUnavailable",
    "Done",
    "Drift",
    "Handler",
    "Later",
    "Message",
    "NotPublished",
    "Poison",
    "PublishUnknown",
    "Verdict",
    "ensure_streams",
    "open_bus",
]

HANDLERS_LIMIT = 3.0
LAST_WAKEUPS_LIMIT = 0.5
MOST_WAKEUPS = 10_000

_wakeups = metrics.counter("autopost_nats_wakeups", "Wakeups by result.")


class Bus:
    def __init__(self, connection: NatsConnection, topology: Topology) -> None:
        self.topology = topology
        self._connection = connection
        self._closing = asyncio.Event()
        self._pulls: list[Pull] = []
        self._wakes: dict[str, int | None] = {}
        self._woken = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._connection.connected

    def bound(self, consumer: ConsumerSpec) -> bool:
        """Whether the server currently responds for this consumer."""
        return any(pull.bound for pull in self._pulls if pull.consumer == consumer)

    @property
    def connects(self) -> int:
        """How often the connection was made: what others published in between was missed."""
        return self._connection.connects

    def wake(self, subject: str, number: int | None = None) -> None:
        """Call after a commit. Never waits and never raises; a lost wakeup costs one poll interval. The highest
        ``number`` of those that wait is sent."""
        if self._connection.url is None:
            return
        if not self.connected or len(self._wakes) >= MOST_WAKEUPS:
            _wakeups.add(1, {"result": "failed"})
            return
        waiting = self._wakes.get(subject)
        self._wakes[subject] = number if waiting is None or number is None else max(number, waiting)
        self._woken.set()

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        msg_id: str,
        headers: Mapping[str, str] | None = None,
        timeout: timedelta = timedelta(seconds=5),
    ) -> bool:
        """``False`` when the stream already has this id. Raises ``NotPublished`` or ``PublishUnknown``."""
        if not self.connected:
            raise NotPublished("not connected to NATS")
        all_headers = {**(headers or {}), api.Header.MSG_ID.value: msg_id}
        if traceparent := telemetry.current_traceparent():
            all_headers.setdefault("traceparent", traceparent)
        try:
            ack = await self._connection.js.publish(
                subject, payload, timeout=timeout.total_seconds(), headers=all_headers
            )
        except nats.js.errors.NoStreamResponseError:
            await self._connection.ensure()
            raise NotPublished("the stream does not exist") from None
        except (nats.js.errors.APIError, nats.errors.MaxPayloadError, nats.errors.OutboundBufferLimitError) as exc:
            raise NotPublished(type(exc).__name__) from exc
        except (nats.errors.Error, OSError) as exc:  # includes TimeoutError
            raise PublishUnknown(type(exc).__name__) from exc
        return not ack.duplicate

    def ordered_publisher(self, stream: str) -> OrderedPublisher:
        """A publisher of many messages into one stream, in order and without gaps."""
        return OrderedPublisher(self._connection, stream)

    async def wakeups(self, consumer: ConsumerSpec, handle: Callable[[str], None]) -> None:
        """Call ``handle`` with the subject of each wakeup, until the bus is closed. An invalid wakeup is counted and
        dropped; the poll finds the work."""

        async def on_wakeup(msg: Msg) -> None:
            try:
                handle(msg.subject)
            except Exception as exc:
                _wakeups.add(1, {"result": "unreadable"})
                get_logger().warning("nats.wakeup_unreadable", subject=msg.subject[:200], error=type(exc).__name__)

        await self._run(Pull(self._connection, consumer, on_wakeup))

    async def listen(self, subjects: str, handle: Callable[[str, bytes], None]) -> None:
        """Call ``handle`` with subject and data of each message of no stream, until the bus is closed. Messages of the
        time without a connection are lost, see ``connects``."""

        async def on_message(msg: Msg) -> None:
            try:
                handle(msg.subject, msg.data)
            except Exception as exc:
                _wakeups.add(1, {"result": "unreadable"})
                get_logger().warning("nats.wakeup_unreadable", subject=msg.subject[:200], error=type(exc).__name__)

        if self._connection.url is not None:
            await self._connection.up.wait()
            await self._connection.client.subscribe(subjects, cb=on_message)  # the library renews it on reconnect
        await self._closing.wait()

    async def consume(self, consumer: ConsumerSpec, handle: Handler, *, concurrency: int = 1) -> None:
        """Settle each message by the handler's verdict, until the bus is closed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self._run(Pull(self._connection, consumer, Settler(consumer, handle))))

    def start(self) -> None:
        self._connection.start()
        self._sender = asyncio.create_task(self._send_wakes(), name="nats wakeups")

    async def close(self) -> None:
        """Stop fetching, let handlers finish, send the last wakeups and disconnect."""
        self._closing.set()
        for pull in self._pulls:
            pull.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(HANDLERS_LIMIT):
                await asyncio.gather(*(pull.finished.wait() for pull in self._pulls))
        await self._end_sender()
        await self._connection.close()

    async def _run(self, pull: Pull) -> None:
        if self._connection.url is None:
            await self._closing.wait()
            return
        if self._closing.is_set():
            return
        self._pulls.append(pull)
        try:
            await pull.run()
        finally:
            self._pulls.remove(pull)

    async def _send_wakes(self) -> None:
        while True:
            heed()
            await self._woken.wait()
            self._woken.clear()
            await self._send_pending()

    async def _send_pending(self) -> None:
        wakes, self._wakes = self._wakes, {}
        for subject, number in wakes.items():
            try:
                await self._connection.client.publish(subject, b"" if number is None else b"%d" % number)
            except Exception:  # one failed wakeup must not stop the sender
                _wakeups.add(1, {"result": "failed"})
            else:
                _wakeups.add(1, {"result": "sent"})

    async def _end_sender(self) -> None:
        if self._sender is not None:
            await end([self._sender])
        if self.connected:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._send_pending(), LAST_WAKEUPS_LIMIT)


@asynccontextmanager
async def open_bus(config: ServiceConfig, service: Service | str) -> AsyncIterator[Bus]:
    """Never waits for NATS. A permanently closed connection stops the service, so that it is restarted."""
    known = None if isinstance(service, str) else service
    name = service if isinstance(service, str) else service.name
    topology = Topology(config.nats_namespace)
    lost = (lambda: known.fail("nats.lost")) if known else (lambda: None)
    bus = Bus(NatsConnection(config.nats_url, topology, name, lost, config), topology)
    metrics.gauge("autopost_nats_connected", "1 while connected to NATS.", lambda: float(bus.connected))
    bus.start()
    try:
        yield bus
    finally:
        await bus.close()
