"""Publish into one stream, many at a time and in an unbroken order.

Each message names the one before it, the first one the number of the stream's last. So whatever is lost on the way, or
lands late from a buffer, or meets a stream that was wiped meanwhile: nothing is stored before what precedes it. After
any failure ``look`` at the stream and publish again from where one is sure; what is there already is kept once.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import nats.errors
from msgspec import Struct
from nats.js import api
from nats.js.errors import NotFoundError

from autopost_runtime.nats.connection import NatsConnection
from autopost_runtime.nats.pending_acks import NOBODY, Answer, PendingAcks
from autopost_runtime.nats.streams import Part

NO_CONSUMER = ""
ACK_LIMIT = timedelta(seconds=5)
A_WHILE = timedelta(milliseconds=200)


class NotPublished(Exception):  # noqa: N818  named for what happened
    """It certainly did not reach the stream."""


class PublishUnknown(Exception):  # noqa: N818  named for what happened
    """It may be in the stream. Publish again with the same id."""


class StreamMessage(Struct, frozen=True):
    subject: str
    payload: bytes
    msg_id: str
    headers: dict[str, str]


class StreamState(Struct, frozen=True):
    """What identifies a stream and how far it has come."""

    created: datetime
    first_seq: int | None
    """``None`` when it has limits besides its age: then its beginning goes away by itself."""
    last_seq: int
    messages: int
    max_age: timedelta


class OrderedPublisher:
    """Of one publisher: two into the same stream stop each other, and neither harms the order."""

    def __init__(self, connection: NatsConnection, stream: str) -> None:
        self._connection = connection
        self._acks = PendingAcks(connection.client)
        self._stream = stream
        self._expected: dict[str, str] | None = None
        self._first_seq = 0

    @property
    def ready(self) -> bool:
        """``False`` before the first look and after each failure."""
        return self._expected is not None

    async def look(self) -> StreamState:
        """The stream as it is; what is published next is what follows its last message."""
        self._expected = None
        if not self._connection.connected:
            raise NotPublished("not connected to NATS")
        try:
            await self._acks.start()
            info = await self._connection.js.stream_info(self._stream)
        except NotFoundError:
            await self._connection.ensure(Part(self._stream, NO_CONSUMER))
            raise NotPublished("the stream does not exist") from None
        except (nats.errors.Error, OSError) as exc:
            raise NotPublished(type(exc).__name__) from exc
        self._expected = {api.Header.EXPECTED_LAST_SEQUENCE.value: str(info.state.last_seq)}
        self._first_seq = info.state.first_seq
        return _sight(info)

    async def clear(self, last_seq: int) -> None:
        """Take out everything up to there; then look again."""
        self._expected = None
        try:
            await self._connection.js.purge_stream(self._stream, seq=last_seq + 1)
        except (nats.errors.Error, OSError) as exc:
            raise NotPublished(type(exc).__name__) from exc

    async def publish(self, messages: Sequence[StreamMessage]) -> int:
        """The number of the last one, once all are acknowledged. Raises ``NotPublished`` or ``PublishUnknown``."""
        if not self.ready:
            raise NotPublished("an earlier publish failed")
        try:
            answers = [await self._send(message) for message in messages]
            return await self._acknowledged(answers)
        except BaseException:
            self._expected = None
            self._acks.forget()
            raise

    async def _send(self, message: StreamMessage) -> Answer:
        assert self._expected is not None  # noqa: S101  for the type checker
        fixed = {api.Header.MSG_ID.value: message.msg_id, api.Header.EXPECTED_STREAM.value: self._stream}
        headers = {**message.headers, **self._expected, **fixed}
        self._expected = {api.Header.EXPECTED_LAST_MSG_ID.value: message.msg_id}
        reply, answer = self._acks.expect()
        try:
            await self._connection.client.publish(message.subject, message.payload, reply, headers)
        except (nats.errors.MaxPayloadError, nats.errors.OutboundBufferLimitError) as exc:
            raise NotPublished(type(exc).__name__) from exc
        except (nats.errors.Error, OSError) as exc:
            raise PublishUnknown(type(exc).__name__) from exc
        return answer

    async def _acknowledged(self, answers: Sequence[Answer]) -> int:
        waiting = await self._patiently(answers)
        refusals = [refusal for answer in answers if answer.done() and (refusal := answer.result().error)]
        if NOBODY.error in refusals:
            await self._connection.ensure(Part(self._stream, NO_CONSUMER))
        if refusals:
            raise NotPublished(refusals[0].description)
        if waiting:
            raise PublishUnknown("not acknowledged")
        acks = [answer.result() for answer in answers]
        if any(ack.duplicate and ack.seq < self._first_seq for ack in acks):
            raise NotPublished("the stream was purged and still deduplicates the old message ids")
        return max(ack.seq for ack in acks)

    async def _patiently(self, answers: Sequence[Answer]) -> set[Answer]:
        """Those that did not come: in time, or before the connection was lost."""
        waiting = set(answers)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ACK_LIMIT.total_seconds()
        while waiting and self._connection.connected and loop.time() < deadline:
            _, waiting = await asyncio.wait(waiting, timeout=A_WHILE.total_seconds())
        return waiting


def _sight(info: api.StreamInfo) -> StreamState:
    assert info.created is not None  # noqa: S101  every server tells it
    state, config = info.state, info.config
    ages_only = (config.max_msgs or 0) <= 0 and (config.max_bytes or 0) <= 0
    first_seq = state.first_seq if ages_only else None
    return StreamState(info.created, first_seq, state.last_seq, state.messages, timedelta(seconds=config.max_age or 0))
