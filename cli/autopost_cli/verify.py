"""`autopost verify`: the log is the truth. Folds the events of every delivery and compares with its row.

It reads in chunks, one statement each, so it needs no quiet and holds nothing up: rows change together with their
events, and a chunk sees both as they were in one moment. The stream is read first, then the table: what the relay
had passed when the reading began must be there.
"""

import sys
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import click
from autopost_contracts.subjects import DEFAULT_NAMESPACE, Topology

from autopost_cli.operate import Order, print_json, reading, run
from autopost_cli.operate_gateway import Connection, Row, connected, list_workspaces
from autopost_cli.verify_gateway import Chunk, VerifyGateway
from autopost_cli.verify_report import Report
from autopost_cli.verify_stream import StreamReport, read_stream
from autopost_cli.workspace import choose_workspace

NO_NATS = "off"
LEFT_OUT = (
    "The audit stream was left out: an event that belongs to no delivery and was deleted, or one that was changed "
    "where its delivery does not show it, cannot be seen without it."
)
NOBODYS = UUID(int=0)
"""Under it stand the events of the installation, such as of an operator's status token."""


@click.command()
@click.option(
    "--nats-url", envvar="AUTOPOST_NATS_URL", help="Where the audit stream is; AUTOPOST_NATS_URL if not given."
)
@click.option("--nats-namespace", envvar="AUTOPOST_NATS_NAMESPACE", default=DEFAULT_NAMESPACE, show_default=True)
@click.option("--no-stream", is_flag=True, help="Leave the audit stream out.")
@click.option(
    "--most", type=click.IntRange(1, 10_000), default=100, show_default=True, help="List so many differences at most."
)
@reading
def verify(order: Order, nats_url: str | None, nats_namespace: str, no_stream: bool, most: int) -> None:
    """Prove that every delivery is what its events say, that nothing is missing, and that the stream has it all.

    Of all workspaces, unless one is named. Changes nothing and disturbs nobody. Exits 0 only if all of it holds, 1 with
    the differences.
    """
    if not no_stream and nats_url is None:
        raise click.UsageError("--nats-url: say where the audit stream is, or --no-stream to leave it out")
    stream = None if no_stream or nats_url == NO_NATS else nats_url
    report = run(_verify(order, stream, Topology(nats_namespace), most))
    if order.as_json:
        print_json(report.as_json())
    else:
        report.print()
    sys.exit(0 if report.holds else 1)


async def _verify(order: Order, nats_url: str | None, topology: Topology, most: int) -> Report:
    report = Report(most=most)
    async with connected(order.database_url) as connection:
        gateway = VerifyGateway(connection, most)
        chosen = await choose_workspace(connection, order.workspace) if order.workspace else None
        cursor, stream = await _hear(gateway, nats_url, topology, chosen, report)
        for workspace in await _workspaces(connection, chosen):
            await _look(gateway, workspace, stream, cursor, report)
    return report


async def _workspaces(connection: Connection, chosen: UUID | None) -> list[tuple[UUID, str]]:
    found = [(row["workspace_id"], row["name"]) for row in await list_workspaces(connection)]
    found.append((NOBODYS, "(no workspace)"))
    return [one for one in found if chosen in (None, one[0])]


async def _hear(
    gateway: VerifyGateway, nats_url: str | None, topology: Topology, workspace: UUID | None, report: Report
) -> tuple[Row | None, StreamReport]:
    """The cursor before the stream: what it had passed by then is in what is read now."""
    if nats_url is None:
        report.notes.append(LEFT_OUT)
        return None, StreamReport()
    cursor = await gateway.audit_cursor()
    if cursor is None:
        report.notes.append("No relay has run here yet: the stream need not have anything.")
    with click.progressbar(length=1, label="stream    ", file=sys.stderr) as bar:

        def progress(read: int, there: int) -> None:
            bar.length = max(there, read)
            bar.update(read - bar.pos)

        heard = await read_stream(nats_url, topology, gateway, workspace, report.most, progress)
    report.add("messages", heard.messages, heard.found, heard.differences)
    return cursor, heard


async def _look(
    gateway: VerifyGateway, workspace: tuple[UUID, str], stream: StreamReport, cursor: Row | None, report: Report
) -> None:
    ident, name = workspace
    size = await gateway.verify_size(ident)
    walks: list[tuple[str, int, AsyncIterator[Chunk]]] = [
        ("deliveries", size.deliveries, gateway.verify_deliveries(ident)),
        ("queue rows", size.queue_rows, gateway.verify_queue(ident)),
        ("channels", 1, gateway.verify_channels(ident)),
        ("events", size.events, gateway.verify_events(ident, stream.since, cursor)),
    ]
    for what, about, chunks in walks:
        with click.progressbar(length=max(about, 1), label=f"{what:<10}", file=sys.stderr) as bar:
            async for chunk in chunks:
                report.add(what, chunk.checked, chunk.found, chunk.differences, workspace=name)
                _compare(chunk, stream, lambda one: report.add("events", 0, 1, [one], workspace=name))
                bar.update(chunk.checked)


def _compare(chunk: Chunk, stream: StreamReport, missing: Callable[[Row], None]) -> None:
    for seq, event in zip(chunk.seqs, chunk.ids, strict=True):
        if seq not in stream.seen:
            missing({"kind": "missing_in_stream", "event_id": event})
