"""Publish batches into one stream, in order and without gaps.

Each message names the id of its predecessor; the first one names the last sequence number of the stream. So a message
is never stored without its predecessor, even when messages are lost, arrive late from a buffer, or the stream is
purged. After a failure, ``look`` at the stream and publish again from a known point; duplicates are stored once.
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
    """The message is certainly not in the stream."""


class PublishUnknown(Exception):  # noqa: N818  named for what happened
    """The message may be in the stream. Publish it again with the same id."""


class StreamMessage(Struct, frozen=True):
    subject: str
    payload: bytes
    msg_id: str
    headers: dict[str, str]


class StreamState(Struct, frozen=True):
    """The identity and the position of a stream."""

    created: datetime
    first_seq: int | None
    """``None`` when the stream has limits besides its age, because it then drops old messages by itself."""
    last_seq: int
    messages: int
    max_age: timedelta


class OrderedPublisher:
    """For a single publisher: two on the same stream make each other fail, but cannot break the order."""

    def __init__(self, connection: NatsConnection, stream: str) -> None:
        self._connection = connection
        self._acks = PendingAcks(connection.client)
        self._stream = stream
        self._expected: dict[str, str] | None = None
        self._first_seq = 0

    @property
    def ready(self) -> bool:
        """``False`` before the first ``look`` and after each failure."""
        return self._expected is not None

    async def look(self) -> StreamState:
        """Read the state of the stream; the next publish follows its last message."""
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
        return _state(info)

    async def clear(self, last_seq: int) -> None:
        """Purge the messages up to ``last_seq``; then ``look`` again."""
        self._expected = None
        try:
            await self._connection.js.purge_stream(self._stream, seq=last_seq + 1)
        except (nats.errors.Error, OSError) as exc:
            raise NotPublished(type(exc).__name__) from exc

    async def publish(self, messages: Sequence[StreamMessage]) -> int:
        """Returns the last sequence number when all are acknowledged. Raises ``NotPublished`` or ``PublishUnknown``."""
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
        waiting = await self._wait_for_acks(answers)
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

    async def _wait_for_acks(self, answers: Sequence[Answer]) -> set[Answer]:
        """Returns the acks that did not arrive in time or before the connection was lost."""
        waiting = set(answers)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ACK_LIMIT.total_seconds()
        while waiting and self._connection.connected and loop.time() < deadline:
            _, waiting = await asyncio.wait(waiting, timeout=A_WHILE.total_seconds())
        return waiting


def _state(info: api.StreamInfo) -> StreamState:
    assert info.created is not None  # noqa: S101  every server sends it
    state, config = info.state, info.config
    ages_only = (config.max_msgs or 0) <= 0 and (config.max_bytes or 0) <= 0
    first_seq = state.first_seq if ages_only else None
    return StreamState(info.created, first_seq, state.last_seq, state.messages, timedelta(seconds=config.max_age or 0))
