"""Pull messages from JetStream and settle each one exactly once.

A handler returns ``Done``, ``Later`` or ``Poison``; only this module acks, naks or terminates. A message is
acked after its effects are committed, never before. The loop survives the loss of the connection, the stream or
the consumer, and never spins: every iteration waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import msgspec
import nats.errors
from autopost_contracts.subjects import ConsumerSpec
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import FetchTimeoutError, NotFoundError, ServiceUnavailableError
from opentelemetry.trace import SpanKind

from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.cancelling import heed
from autopost_runtime.nats.streams import Part, consumer_drift
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from autopost_runtime.telemetry.logs import get_logger

FETCH_LIMIT = 2.0
"""Also the time until a deleted consumer is noticed: it looks idle until the fetch ends."""

HEARTBEAT = 0.9
ACK_LIMIT = 2.0
LONGEST_DELAY = timedelta(minutes=1)
DENIED_REST = timedelta(minutes=1)
"""A long pause, because a retry does not change permissions."""

R = TypeVar("R")

_settled = metrics.counter("autopost_nats_messages", "Settled messages by verdict.")
_unreadable = metrics.counter("autopost_nats_unreadable_total", "Messages that the client library failed on.")


class Done(msgspec.Struct, frozen=True):
    """The effects of the message are committed."""


class Later(msgspec.Struct, frozen=True):
    """Deliver the message again after ``delay``."""

    delay: timedelta


class Poison(msgspec.Struct, frozen=True):
    """The message is invalid; do not deliver it again."""

    reason: str


Verdict = Done | Later | Poison


class Message(msgspec.Struct, frozen=True):
    subject: str
    payload: bytes
    headers: dict[str, str]
    delivered: int
    """The number of deliveries, including this one."""


Handler = Callable[[Message], Awaitable[Verdict]]


class ConnectionState(Protocol):
    """The parts of the connection that a pull uses."""

    up: asyncio.Event

    @property
    def js(self) -> JetStreamContext: ...
    @property
    def denials(self) -> int: ...
    async def ensure(self, part: Part) -> None: ...


class Pull:
    """One loop over one durable consumer. It binds to the consumer and never creates it."""

    def __init__(
        self, link: ConnectionState, consumer: ConsumerSpec, on_message: Callable[[Msg], Awaitable[None]]
    ) -> None:
        self.consumer = consumer
        self.bound = False
        self.finished = asyncio.Event()
        self._link = link
        self._on_message = on_message
        self._stop_requested = asyncio.Event()
        self._backoff = Backoff(timedelta(milliseconds=100), timedelta(seconds=5))
        self._denials = link.denials
        """The denials before the first fetch; the request for consumer info may itself be denied."""
        self._log = get_logger(stream=consumer.stream, consumer=consumer.durable)

    async def run(self) -> None:
        """Returns after ``stop``, once the current message is handled."""
        try:
            while self._running():
                await self._interruptible(self._link.up.wait())
                if self._running():
                    await self._pull_until_error()
        finally:
            self.finished.set()

    def stop(self) -> None:
        self._stop_requested.set()

    async def _pull_until_error(self) -> None:
        try:
            await self._pull()
        except (NotFoundError, ServiceUnavailableError):
            self._log.warning("nats.consumer_gone")
            self.bound = False
            await self._interruptible(self._link.ensure(Part(self.consumer.stream, self.consumer.durable)))
        except (nats.errors.Error, OSError) as exc:  # includes TimeoutError
            self._log.info("nats.pull_interrupted", error=type(exc).__name__)
        except Exception as exc:  # a message with the headers of a server response makes the library raise anything
            _unreadable.add(1, {"consumer": self.consumer.durable})
            self._log.warning("nats.message_unreadable", error=type(exc).__name__)
        finally:
            self.bound = False
        if self._link.denials > self._denials:
            self._log.error("nats.consumer_denied", advice="see examples/nats-server.conf for the required permissions")
            await self._interruptible(asyncio.sleep(DENIED_REST.total_seconds()))
        await self._interruptible(self._backoff.wait())

    async def _pull(self) -> None:
        subscription = await self._link.js.pull_subscribe_bind(
            consumer=self.consumer.durable, stream=self.consumer.stream
        )
        try:
            await self._verify()
            self._denials = self._link.denials
            while self._running():
                if message := await self._interruptible(self._fetch(subscription)):
                    await self._on_message(message)
        finally:
            with suppress(Exception):
                await subscription.unsubscribe()

    async def _verify(self) -> None:
        """Raises when the consumer is missing. A role without this permission detects it with its first fetch."""
        try:
            info = await self._link.js.consumer_info(self.consumer.stream, self.consumer.durable, timeout=FETCH_LIMIT)
        except nats.errors.TimeoutError:
            return
        consumer_drift(self.consumer, info)
        self._mark_bound()

    async def _fetch(self, subscription: JetStreamContext.PullSubscription) -> Msg | None:
        """``None`` when the consumer has no message; ``TimeoutError`` when the server did not respond."""
        try:
            messages = await subscription.fetch(1, timeout=FETCH_LIMIT, heartbeat=HEARTBEAT)
        except FetchTimeoutError:
            messages = []
        self._mark_bound()
        return messages[0] if messages else None

    def _mark_bound(self) -> None:
        self.bound = True
        self._backoff.reset()

    def _running(self) -> bool:
        heed()
        return not self._stop_requested.is_set()

    async def _interruptible(self, coro: Coroutine[Any, Any, R]) -> R | None:
        """``None`` after ``stop``. ``coro`` runs in its own task, so that it cannot swallow our cancellation."""
        task = asyncio.create_task(coro)
        stopped = asyncio.create_task(self._stop_requested.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for one in (task, stopped):
                one.cancel()
                one.add_done_callback(_retrieve_exception)


class Settler:
    """Calls the handler of a message and settles the message by the verdict."""

    def __init__(self, consumer: ConsumerSpec, handle: Handler) -> None:
        self._consumer = consumer
        self._handle = handle

    async def __call__(self, msg: Msg) -> None:
        verdict = await self._verdict(msg)
        _settled.add(1, {"consumer": self._consumer.durable, "verdict": type(verdict).__name__.lower()})
        match verdict:
            case Done():
                await self._ack(msg)
            case Later(delay):
                await msg.nak(delay.total_seconds())
            case Poison(reason):
                get_logger().error("nats.poison", subject=msg.subject, consumer=self._consumer.durable, reason=reason)
                await msg.term()

    async def _verdict(self, msg: Msg) -> Verdict:
        headers = dict(msg.headers or {})
        delivered = msg.metadata.num_delivered or 1
        progress = asyncio.create_task(self._extend_ack_wait(msg))
        try:
            with telemetry.tracer().start_as_current_span(
                f"process {self._consumer.stream}",
                context=telemetry.context_from(headers.get("traceparent")),
                kind=SpanKind.CONSUMER,
                attributes={"messaging.system": "nats", "messaging.destination.name": self._consumer.stream},
            ):
                return await self._handle(Message(msg.subject, msg.data, headers, delivered))
        except Exception as exc:
            get_logger().error("nats.handler_failed", exc_info=exc, subject=msg.subject, delivered=delivered)
            return Later(min(LONGEST_DELAY, timedelta(seconds=2 ** min(delivered, 6))))
        finally:
            progress.cancel()

    async def _extend_ack_wait(self, msg: Msg) -> None:
        """Extend the ack deadline while a slow handler runs."""
        while True:
            await asyncio.sleep(self._consumer.ack_wait.total_seconds() / 3)
            with suppress(nats.errors.Error):
                await msg.in_progress()

    async def _ack(self, msg: Msg) -> None:
        """Waits for the server, because a plain ack succeeds even when it is not received."""
        try:
            await msg.ack_sync(timeout=ACK_LIMIT)
        except nats.errors.Error as exc:  # redelivered, although its effects are committed
            get_logger().warning("nats.ack_unknown", subject=msg.subject, error=type(exc).__name__)


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, so that asyncio does not log "exception was never retrieved"."""
    if not task.cancelled():
        task.exception()
