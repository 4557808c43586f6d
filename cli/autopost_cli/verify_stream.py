"""Read the audit stream from end to end, and remember which events it has: one bit each.

A message must be an event of the table, by workspace, time, id and seq; then the bit of its seq is set. A hundred
million events take 12 MB, whatever the order in which they come and however often.
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
from autopost_cli.verify_gateway import VerifyGateway

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


class Heard(msgspec.Struct, frozen=True):
    """What of an event's message says which one it is."""

    id: UUID
    workspace_id: UUID
    seq: int
    ts: datetime


class StreamReport(msgspec.Struct, kw_only=True):
    seen: Seen = msgspec.field(default_factory=Seen)
    since: datetime = BEGINNING
    """Events from then on cannot have left the stream by age."""
    messages: int = 0
    found: int = 0
    differences: list[Row] = msgspec.field(default_factory=list)

    def unknown(self, where: int, event: UUID | None, most: int) -> None:
        self.found += 1
        if len(self.differences) < most:
            self.differences.append({"kind": "unknown_in_stream", "stream_seq": where, "event_id": event})


async def read_stream(
    nats_url: str,
    topology: Topology,
    gateway: VerifyGateway,
    workspace: UUID | None,
    most: int,
    progress: Callable[[int, int], None],
) -> StreamReport:
    """``progress(messages read, messages there)``. Raises ``click.ClickException`` when it cannot be read."""
    report = StreamReport()
    stream = topology.audit_stream.name
    subject = topology.audit(None if workspace is None else WorkspaceId(workspace), None)
    try:
        async with connected(nats_url) as js:
            info = await js.stream_info(stream)
            async for batch in _batches(js, stream, subject, info.state.last_seq):
                await _take_in(batch, gateway, report, most)
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
    age = timedelta(seconds=info.config.max_age or 0)
    if age:
        report.since = datetime.now(UTC) - age + min(GONE_SOON, age / 10)
    return report


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


async def _take_in(batch: list[Msg], gateway: VerifyGateway, report: StreamReport, most: int) -> None:
    report.messages += len(batch)
    heard: list[Heard] = []
    places: list[int] = []
    for message in batch:
        where = message.metadata.sequence.stream
        try:
            heard.append(msgspec.json.decode(message.data, type=Heard))
        except msgspec.DecodeError:
            report.unknown(where, None, most)
        else:
            places.append(where)
    unknown = set(
        await gateway.unknown_events(
            [event.workspace_id for event in heard],
            [event.ts for event in heard],
            [event.id for event in heard],
            [event.seq for event in heard],
        )
    )
    for place, event in enumerate(heard):
        if place in unknown:
            report.unknown(places[place], event.id, most)
        else:
            report.seen.add(event.seq)
