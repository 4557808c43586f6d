"""Read the whole audit stream and store which events it contains, one bit per event.

A message must match an event of the table (workspace, time, id, seq and content); then the bit of its seq is set. A
hundred million events need 12 MB, in any order and with repeats. The same bits show whether the events of a delivery
first appear in order: the previous event must have been seen before.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import click
import msgspec
import nats.errors
import nats.js.errors
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from autopost_cli.operate.gateway import Row
from autopost_cli.operate.jetstream import UnreadableError, connected
from autopost_cli.verify.gateway import StreamedEvent, VerifyGateway

BATCH = 1000
PATIENCE = 10.0
EXPIRY_MARGIN = timedelta(hours=1)
BEGINNING = datetime.min.replace(tzinfo=UTC)
BITS = 1 << 16


class SeqSet:
    """A set of mostly consecutive seqs, as bitmaps of 8 KiB."""

    def __init__(self) -> None:
        self._pieces: dict[int, bytearray] = {}

    def add(self, seq: int) -> None:
        piece = self._pieces.setdefault(seq // BITS, bytearray(BITS // 8))
        piece[seq % BITS // 8] |= 1 << seq % 8

    def __contains__(self, seq: int) -> bool:
        piece = self._pieces.get(seq // BITS)
        return piece is not None and bool(piece[seq % BITS // 8] >> seq % 8 & 1)


class OutOfOrder(msgspec.Struct, frozen=True):
    """An event whose previous event was not seen before it."""

    where: int
    event: UUID
    before: int


class StreamReport(msgspec.Struct, kw_only=True):
    seen: SeqSet = msgspec.field(default_factory=SeqSet)
    since: datetime = BEGINNING
    """Later events cannot have expired in the stream."""
    messages: int = 0
    found: int = 0
    differences: list[Row] = msgspec.field(default_factory=list)

    out_of_order: list[OutOfOrder] = msgspec.field(default_factory=list)
    most: int = 0

    def differ(self, kind: str, where: int, event: UUID | None, **more: str) -> None:
        self.found += 1
        if len(self.differences) < self.most:
            self.differences.append({"kind": kind, "stream_seq": where, "event_id": event, **more})

    def record(self, where: int, event: StreamedEvent, before: int | None) -> None:
        """Only the first appearance of an event counts for the order."""
        is_early = before is not None and before not in self.seen and event.seq not in self.seen
        if before is not None and is_early and len(self.out_of_order) < self.most:
            self.out_of_order.append(OutOfOrder(where, event.id, before))
        self.seen.add(event.seq)

    def check_order(self) -> None:
        """A previous event that is nowhere in the stream is reported as missing instead, by the walk of the table."""
        for one in self.out_of_order:
            if one.before in self.seen:
                self.differ("order_in_stream", one.where, one.event)


async def read_stream(
    nats_url: str,
    topology: Topology,
    gateway: VerifyGateway,
    workspace: UUID | None,
    most: int,
    progress: Callable[[int, int], None],
) -> StreamReport:
    """``progress(messages read, messages in the stream)``. Raises ``click.ClickException`` on read errors."""
    report = StreamReport(most=most)
    stream = topology.audit_stream.name
    subject = topology.audit(None if workspace is None else WorkspaceId(workspace), None)
    try:
        async with connected(nats_url) as js:
            info = await js.stream_info(stream)
            report.since = _complete_since(info)
            async for batch in _batches(js, stream, subject, info.state.last_seq):
                await _check_batch(batch, gateway, report)
                progress(report.messages, info.state.messages)
    except UnreadableError as exc:
        raise click.ClickException(f"{exc}; or use --no-stream to check without the stream") from None
    except nats.js.errors.NotFoundError:
        raise click.ClickException(
            f"this NATS server has no stream {stream}; check that --nats-namespace is the one of the services, "
            "or use --no-stream to check without the stream"
        ) from None
    except (nats.errors.Error, TimeoutError) as exc:
        raise click.ClickException(
            f"lost the connection to NATS ({type(exc).__name__}); run the command again"
        ) from None
    report.check_order()
    report.since = _complete_since(info)  # more has expired in the meantime
    return report


def _complete_since(info: api.StreamInfo) -> datetime:
    age = timedelta(seconds=info.config.max_age or 0)
    return datetime.now(UTC) - age + min(EXPIRY_MARGIN, age / 10) if age else BEGINNING


async def _batches(js: JetStreamContext, stream: str, subject: str, last: int) -> AsyncIterator[list[Msg]]:
    """All messages up to ``last``."""
    config = api.ConsumerConfig(
        ack_policy=api.AckPolicy.NONE,
        deliver_policy=api.DeliverPolicy.ALL,
        mem_storage=True,
        inactive_threshold=60,
    )
    subscription = await js.pull_subscribe(subject, stream=stream, config=config)
    try:
        left = (await subscription.consumer_info()).num_pending or 0
        while left:
            batch = await subscription.fetch(BATCH, timeout=PATIENCE)
            yield batch
            metadata = batch[-1].metadata
            left = metadata.num_pending if metadata.sequence.stream < last else 0
    finally:
        with suppress(nats.errors.Error, nats.js.errors.Error):
            await subscription.unsubscribe()


async def _check_batch(batch: list[Msg], gateway: VerifyGateway, report: StreamReport) -> None:
    report.messages += len(batch)
    streamed: list[tuple[int, StreamedEvent, str]] = []
    for message in batch:
        where = message.metadata.sequence.stream
        try:
            streamed.append((where, *_read(message.data)))
        except (msgspec.DecodeError, UnicodeDecodeError):
            report.differ("unknown_in_stream", where, None)
    verdicts = await gateway.check_stream(
        [one for _, one, _ in streamed], [body for _, _, body in streamed], report.since
    )
    for (where, event, _), verdict in zip(streamed, verdicts, strict=True):
        if not verdict["known"]:
            report.differ("unknown_in_stream", where, event.id)
            continue
        if verdict["differs"]:
            report.differ("altered", where, event.id, row=", ".join(verdict["differs"]))
        report.record(where, event, verdict["before"])


def _read(data: bytes) -> tuple[StreamedEvent, str]:
    """Raises ``DecodeError`` also for a null character: Postgres cannot store it, so it is no event of ours."""
    body = data.decode()
    if "\\u0000" in body:
        raise msgspec.DecodeError("a null character")
    return msgspec.json.decode(data, type=StreamedEvent), body
