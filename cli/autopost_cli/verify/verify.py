"""`autopost verify`: fold the events of every delivery and the turns of every chat, and compare with the rows.

It reads in chunks of one statement each, so it works on a busy system and blocks nothing: a row and its events change
in one transaction, and a chunk sees both in one snapshot. The stream is read before the table: it must contain all
events that the relay had passed at the start.
"""

import sys
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import click
from autopost_contracts.subjects import DEFAULT_NAMESPACE, Topology

from autopost_cli.operate.gateway import Connection, Row, connected, list_workspaces
from autopost_cli.operate.operate import CommonOptions, print_json, reading, run
from autopost_cli.operate.selection import choose_workspace
from autopost_cli.verify.bot import BotCheck
from autopost_cli.verify.gateway import Chunk, Size, VerifyGateway
from autopost_cli.verify.report import VerifyReport
from autopost_cli.verify.stream import StreamReport, read_stream

NO_NATS = "off"
STREAM_NOT_CHECKED = (
    "The audit stream was not checked. Without it, some changes cannot be detected: a deleted event that belongs to no "
    "delivery, and a changed event field that its delivery does not show."
)
NO_WORKSPACE = UUID(int=0)
"""The workspace id of installation-wide events, such as those of an operator's status token."""


@click.command()
@click.option(
    "--nats-url", envvar="AUTOPOST_NATS_URL", help="The NATS server of the audit stream; by default AUTOPOST_NATS_URL."
)
@click.option("--nats-namespace", envvar="AUTOPOST_NATS_NAMESPACE", default=DEFAULT_NAMESPACE, show_default=True)
@click.option("--no-stream", is_flag=True, help="Do not check the audit stream.")
@click.option("--no-bot", is_flag=True, help="Do not read what customers wrote to the shop bot.")
@click.option(
    "--most",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Maximum number of differences to list.",
)
@reading
def verify(
    options: CommonOptions, nats_url: str | None, nats_namespace: str, no_stream: bool, no_bot: bool, most: int
) -> None:
    """Check that deliveries and publications match their events, none is missing, and the stream has them all.

    The updates of a shop bot are decided again by the rules that its log names: states and replies must be the same.
    Chats are shown by their tokens, nothing that customers wrote is shown; the event payload_accessed says that it was
    read.

    Checks all workspaces unless --workspace is given. Changes nothing else and takes no locks that block the services.
    Exit code 0 if there are no differences, else 1.
    """
    if not no_stream and nats_url is None:
        raise click.UsageError(
            "give --nats-url (the NATS server of the audit stream), or --no-stream to check without it"
        )
    stream = None if no_stream or nats_url == NO_NATS else nats_url
    report = run(_verify(options, stream, Topology(nats_namespace), most, bot=not no_bot))
    if options.as_json:
        print_json(report.as_json())
    else:
        report.print()
    sys.exit(0 if report.holds else 1)


async def _verify(
    options: CommonOptions, nats_url: str | None, topology: Topology, most: int, *, bot: bool
) -> VerifyReport:
    report = VerifyReport(most=most)
    async with connected(options.database_url) as connection:
        gateway = VerifyGateway(connection, most)
        chosen = await choose_workspace(connection, options.workspace) if options.workspace else None
        cursor, stream = await _check_stream(gateway, nats_url, topology, chosen, report)
        for workspace in await _workspaces(connection, chosen):
            size = await gateway.verify_size(workspace[0])
            await _check_workspace(gateway, workspace, size, stream, cursor, report)
            if bot and size.turns:
                await _check_bot(gateway, workspace, size.turns, report)
    return report


async def _workspaces(connection: Connection, chosen: UUID | None) -> list[tuple[UUID, str]]:
    found = [(row["workspace_id"], row["name"]) for row in await list_workspaces(connection)]
    found.append((NO_WORKSPACE, "(no workspace)"))
    return [one for one in found if chosen in (None, one[0])]


async def _check_stream(
    gateway: VerifyGateway, nats_url: str | None, topology: Topology, workspace: UUID | None, report: VerifyReport
) -> tuple[Row | None, StreamReport]:
    """Reads the relay cursor before the stream, so that the stream must contain all events up to it."""
    if nats_url is None:
        report.notes.append(STREAM_NOT_CHECKED)
        return None, StreamReport()
    cursor = await gateway.audit_cursor()
    if cursor is None:
        report.notes.append("The relay has not run yet, so the stream may be empty.")
    with click.progressbar(length=1, label="stream      ", file=sys.stderr) as bar:

        def progress(read: int, there: int) -> None:
            bar.length = max(there, read)
            bar.update(read - bar.pos)

        streamed = await read_stream(nats_url, topology, gateway, workspace, report.most, progress)
    report.add("messages", streamed.messages, streamed.found, streamed.differences)
    return cursor, streamed


async def _check_workspace(
    gateway: VerifyGateway,
    workspace: tuple[UUID, str],
    size: Size,
    stream: StreamReport,
    cursor: Row | None,
    report: VerifyReport,
) -> None:
    ident, name = workspace
    walks: list[tuple[str, int, AsyncIterator[Chunk]]] = [
        ("deliveries", size.deliveries, gateway.verify_deliveries(ident)),
        ("queue rows", size.queue_rows, gateway.verify_queue(ident)),
        ("publications", size.publications, gateway.verify_publications(ident)),
        ("channels", 1, gateway.verify_channels(ident)),
        ("events", size.events, gateway.verify_events(ident, stream.since, cursor)),
    ]
    for what, about, chunks in walks:
        with click.progressbar(length=max(about, 1), label=f"{what:<12}", file=sys.stderr) as bar:
            async for chunk in chunks:
                report.add(what, chunk.checked, chunk.found, chunk.differences, workspace=name)
                _report_missing_in_stream(chunk, stream, lambda one: report.add("events", 0, 1, [one], workspace=name))
                bar.update(chunk.checked)


def _report_missing_in_stream(chunk: Chunk, stream: StreamReport, missing: Callable[[Row], None]) -> None:
    for seq, event in zip(chunk.seqs, chunk.ids, strict=True):
        if seq not in stream.seen:
            missing({"kind": "missing_in_stream", "event_id": event})


async def _check_bot(gateway: VerifyGateway, workspace: tuple[UUID, str], about: int, report: VerifyReport) -> None:
    ident, name = workspace
    check = BotCheck(gateway, ident)
    with click.progressbar(length=about, label="turns       ", file=sys.stderr) as bar:
        async for rows in gateway.verify_bot_turns(ident):
            found = await check.add(rows)
            report.add("turns", sum(row["log"] is not None for row in rows), len(found), found, workspace=name)
            bar.update(len(rows))
    found = check.end()
    report.add("turns", 0, len(found), found, workspace=name)
    if check.skipped:
        report.notes.append(
            f"{name}: {check.skipped:,} turns of the bot were not decided again, since what came before them is "
            "forgotten or its rules cannot be read."
        )
