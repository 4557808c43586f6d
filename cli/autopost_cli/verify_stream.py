"""Read the audit stream from end to end, and remember which events it has: one bit each.

A message must be an event of the table, by workspace, time, id and seq, and say what that says; then the bit of its seq
is set. A hundred million events take 12 MB, whatever the order in which they come and however often. The same bits tell
whether the events of a delivery first appear in their order: the one before must have been heard by then.
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

from autopost_cli.events_stream import UnreadableError, connected
from autopost_cli.operate_gateway import Row
from autopost_cli.verify_gateway import Heard, VerifyGateway

BATCH = 1000
PATIENCE = 10.0
GONE_SOON = timedelta(hours=1)
BEGINNING = datetime.min.replace(tzinfo=UTC)
BITS = 1 << 16


class Seen:
    """A set of seqs that is nearly a range, in pieces of 8 KiB."""

    def __init__(self) -> None:
        self._pieces: dict[int, bytearray] = {}

    def add(self, seq: int) -> None:
        piece = self._pieces.setdefault(seq // BITS, bytearray(BITS // 8))
        piece[seq % BITS // 8] |= 1 << seq % 8

    def __contains__(self, seq: int) -> bool:
        piece = self._pieces.get(seq // BITS)
        return piece is not None and bool(piece[seq % BITS // 8] >> seq % 8 & 1)


class Early(msgspec.Struct, frozen=True):
    """An event that was heard and the one before it was not, so far."""

    where: int
    event: UUID
    before: int


class StreamReport(msgspec.Struct, kw_only=True):
    seen: Seen = msgspec.field(default_factory=Seen)
    since: datetime = BEGINNING
    """Events from then on cannot have left the stream by age."""
    messages: int = 0
    found: int = 0
    differences: list[Row] = msgspec.field(default_factory=list)

    early: list[Early] = msgspec.field(default_factory=list)
    most: int = 0

    def differ(self, kind: str, where: int, event: UUID | None, **more: str) -> None:
        self.found += 1
        if len(self.differences) < self.most:
            self.differences.append({"kind": kind, "stream_seq": where, "event_id": event, **more})

    def hear(self, where: int, event: Heard, before: int | None) -> None:
        """Only where an event first appears its place counts."""
        is_early = before is not None and before not in self.seen and event.seq not in self.seen
        if before is not None and is_early and len(self.early) < self.most:
            self.early.append(Early(where, event.id, before))
        self.seen.add(event.seq)

    def settle(self) -> None:
        """What came before and is nowhere is missing, and named as that when the table is walked."""
        for one in self.early:
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
    """``progress(messages read, messages there)``. Raises ``click.ClickException`` when it cannot be read."""
    report = StreamReport(most=most)
    stream = topology.audit_stream.name
    subject = topology.audit(None if workspace is None else WorkspaceId(workspace), None)
    try:
        async with connected(nats_url) as js:
            info = await js.stream_info(stream)
            report.since = _surely_there(info)
            async for batch in _batches(js, stream, subject, info.state.last_seq):
                await _take_in(batch, gateway, report)
                progress(report.messages, info.state.messages)
    except UnreadableError as exc:
        raise click.ClickException(f"{exc}; --no-stream leaves the stream out") from None
    except nats.js.errors.NotFoundError:
        raise click.ClickException(
            f"there is no stream {stream} on this NATS server; --nats-namespace must be the one of the services, "
            "--no-stream leaves the stream out"
        ) from None
    except (nats.errors.Error, TimeoutError) as exc:
        raise click.ClickException(f"NATS stopped answering ({type(exc).__name__}); run it again") from None
    report.settle()
    report.since = _surely_there(info)  # more has left by its age meanwhile
    return report


def _surely_there(info: api.StreamInfo) -> datetime:
    age = timedelta(seconds=info.config.max_age or 0)
    return datetime.now(UTC) - age + min(GONE_SOON, age / 10) if age else BEGINNING


async def _batches(js: JetStreamContext, stream: str, subject: str, last: int) -> AsyncIterator[list[Msg]]:
    """Up to the message that was the last when it began."""
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


async def _take_in(batch: list[Msg], gateway: VerifyGateway, report: StreamReport) -> None:
    report.messages += len(batch)
    heard: list[tuple[int, Heard, str]] = []
    for message in batch:
        where = message.metadata.sequence.stream
        try:
            heard.append((where, *_read(message.data)))
        except (msgspec.DecodeError, UnicodeDecodeError):
            report.differ("unknown_in_stream", where, None)
    verdicts = await gateway.judge_messages([one for _, one, _ in heard], [body for _, _, body in heard], report.since)
    for (where, event, _), verdict in zip(heard, verdicts, strict=True):
        if not verdict["known"]:
            report.differ("unknown_in_stream", where, event.id)
            continue
        if verdict["differs"]:
            report.differ("altered", where, event.id, row=", ".join(verdict["differs"]))
        report.hear(where, event, verdict["before"])


def _read(data: bytes) -> tuple[Heard, str]:
    """Raises what its caller catches, also for JSON that Postgres cannot keep and therefore never told."""
    body = data.decode()
    if "\\u0000" in body:
        raise msgspec.DecodeError("a null character")
    return msgspec.json.decode(data, type=Heard), body
