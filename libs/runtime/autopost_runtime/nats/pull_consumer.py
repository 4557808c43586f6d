"""Pull messages from JetStream and settle each one exactly once.

A handler returns ``Done``, ``Later`` or ``Poison``; only this module acks, naks or terminates. A message is
acked after its effects are committed, never before. A loop survives whatever happens to the connection, the
stream or the consumer, and never spins: every way back to the top passes a pause or a wait.
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
"""A deleted consumer looks idle until the fetch ends, so this is how long it goes unnoticed."""

HEARTBEAT = 0.9
ACK_LIMIT = 2.0
LONGEST_DELAY = timedelta(minutes=1)
DENIED_REST = timedelta(minutes=1)
"""Permissions do not change by asking again."""

R = TypeVar("R")

_settled = metrics.counter("autopost_nats_messages", "Settled messages by verdict.")


class Done(msgspec.Struct, frozen=True):
    """Its effects are committed."""


class Later(msgspec.Struct, frozen=True):
    """Deliver it again after ``delay``."""

    delay: timedelta


class Poison(msgspec.Struct, frozen=True):
    """It will never make sense; do not deliver it again."""

    reason: str


Verdict = Done | Later | Poison


class Message(msgspec.Struct, frozen=True):
    subject: str
    payload: bytes
    headers: dict[str, str]
    delivered: int
    """How often it was delivered, this time included."""


Handler = Callable[[Message], Awaitable[Verdict]]


class ConnectionState(Protocol):
    """What a pull needs of the connection."""

    up: asyncio.Event

    @property
    def js(self) -> JetStreamContext: ...
    @property
    def denials(self) -> int: ...
    async def ensure(self, part: Part) -> None: ...


class Pull:
    """One loop over one durable consumer; binds, never creates."""

    def __init__(
        self, link: ConnectionState, consumer: ConsumerSpec, on_message: Callable[[Msg], Awaitable[None]]
    ) -> None:
        self.consumer = consumer
        self.bound = False
        self.finished = asyncio.Event()
        self._link = link
        self._on_message = on_message
        self._stop_asked = asyncio.Event()
        self._backoff = Backoff(timedelta(milliseconds=100), timedelta(seconds=5))
        self._denials = link.denials
        """As many as there were when the first message was asked for; asking for the consumer may be denied."""
        self._log = get_logger(stream=consumer.stream, consumer=consumer.durable)

    async def run(self) -> None:
        """Returns after ``stop``; a message being handled is finished first."""
        try:
            while self._wanted():
                await self._interruptible(self._link.up.wait())
                if self._wanted():
                    await self._pull_until_trouble()
        finally:
            self.finished.set()

    def stop(self) -> None:
        self._stop_asked.set()

    async def _pull_until_trouble(self) -> None:
        try:
            await self._pull()
        except (NotFoundError, ServiceUnavailableError):
            self._log.warning("nats.consumer_gone")
            self.bound = False
            await self._interruptible(self._link.ensure(Part(self.consumer.stream, self.consumer.durable)))
        except (nats.errors.Error, OSError) as exc:  # TimeoutError is one
            self._log.info("nats.pull_interrupted", error=type(exc).__name__)
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
            while self._wanted():
                if message := await self._interruptible(self._fetch(subscription)):
                    await self._on_message(message)
        finally:
            with suppress(Exception):
                await subscription.unsubscribe()

    async def _verify(self) -> None:
        """Raises when the consumer is gone. A role that may not ask learns the same from its first fetch."""
        try:
            info = await self._link.js.consumer_info(self.consumer.stream, self.consumer.durable, timeout=FETCH_LIMIT)
        except nats.errors.TimeoutError:
            return
        consumer_drift(self.consumer, info)
        self._heard()

    async def _fetch(self, subscription: JetStreamContext.PullSubscription) -> Msg | None:
        """``None`` when the consumer lives but has nothing; ``TimeoutError`` when nobody answered at all."""
        try:
            messages = await subscription.fetch(1, timeout=FETCH_LIMIT, heartbeat=HEARTBEAT)
        except FetchTimeoutError:
            messages = []
        self._heard()
        return messages[0] if messages else None

    def _heard(self) -> None:
        self.bound = True
        self._backoff.reset()

    def _wanted(self) -> bool:
        heed()
        return not self._stop_asked.is_set()

    async def _interruptible(self, coro: Coroutine[Any, Any, R]) -> R | None:
        """``None`` when ``stop`` cut it short. Waits beside the task, so that a cancellation cannot be lost in it."""
        task = asyncio.create_task(coro)
        stopped = asyncio.create_task(self._stop_asked.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for one in (task, stopped):
                one.cancel()
                one.add_done_callback(_forget)


class Settler:
    """Hands a message to its handler and settles it by the verdict."""

    def __init__(self, consumer: ConsumerSpec, handle: Handler) -> None:
        self._consumer = consumer
        self._handle = handle

    async def __call__(self, msg: Msg) -> None:
        verdict = await self._judge(msg)
        _settled.add(1, {"consumer": self._consumer.durable, "verdict": type(verdict).__name__.lower()})
        match verdict:
            case Done():
                await self._ack(msg)
            case Later(delay):
                await msg.nak(delay.total_seconds())
            case Poison(reason):
                get_logger().error("nats.poison", subject=msg.subject, consumer=self._consumer.durable, reason=reason)
                await msg.term()

    async def _judge(self, msg: Msg) -> Verdict:
        headers = dict(msg.headers or {})
        delivered = msg.metadata.num_delivered or 1
        progress = asyncio.create_task(self._keep_claimed(msg))
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

    async def _keep_claimed(self, msg: Msg) -> None:
        """Tells the server that a slow handler is still at it."""
        while True:
            await asyncio.sleep(self._consumer.ack_wait.total_seconds() / 3)
            with suppress(nats.errors.Error):
                await msg.in_progress()

    async def _ack(self, msg: Msg) -> None:
        """Waits for the server, because a plain ack succeeds even when nobody hears it."""
        try:
            await msg.ack_sync(timeout=ACK_LIMIT)
        except nats.errors.Error as exc:  # it will be delivered again; its effects are committed already
            get_logger().warning("nats.ack_unknown", subject=msg.subject, error=type(exc).__name__)


def _forget(task: asyncio.Task[Any]) -> None:
    """Looks at the exception, so that nobody is told it was never looked at."""
    if not task.cancelled():
        task.exception()
