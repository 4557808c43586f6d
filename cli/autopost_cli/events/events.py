"""`autopost events tail`: print events of the audit stream."""

import asyncio
import signal
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import click
from autopost_contracts.events import Action
from autopost_contracts.subjects import DEFAULT_NAMESPACE, Topology
from autopost_runtime.config.env_values import InvalidValue, parse

from autopost_cli.events.stream import ReceivedEvent, Tail, TailFilter
from autopost_cli.operate.gateway import connected as database_connected
from autopost_cli.operate.jetstream import UnreadableError, connected
from autopost_cli.operate.selection import choose_workspace

IDS = ("delivery_id", "message_id", "channel_id")


class Since(click.ParamType[datetime]):
    """A time, or a duration before now."""

    name = "TIME|DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        with suppress(ValueError):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        try:
            ago: timedelta = parse(value, timedelta, {})
            return datetime.now(UTC) - ago
        except (InvalidValue, OverflowError):
            self.fail(f"{value!r} is neither a time like 2026-01-31T09:30 (UTC) nor a duration like 15m", param, ctx)


@click.group()
def events() -> None:
    """Follow the events of the audit stream."""


@events.command()
@click.option(
    "--workspace", metavar="ID|NAME", help="Only events of this workspace; a name is looked up in the database."
)
@click.option(
    "--action",
    metavar="ACTION",
    type=click.Choice([action.value for action in Action]),
    help="Only events with this action: sent, retry_scheduled, dead_letter, …",
)
@click.option(
    "--since", type=Since(), help="Start at this time: 2026-01-31T09:30 (UTC by default), or 15m, 2h, 7d ago."
)
@click.option(
    "--follow/--no-follow", default=True, help="Wait for new events (default), or exit at the end of the stream."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, exactly as it is in the stream.")
@click.option(
    "--nats-url",
    envvar="AUTOPOST_NATS_URL",
    required=True,
    help="The NATS server; by default AUTOPOST_NATS_URL.",
)
@click.option(
    "--database-url",
    envvar="AUTOPOST_DATABASE_URL",
    help="The database, needed for --workspace NAME; by default AUTOPOST_DATABASE_URL.",
)
@click.option("--namespace", envvar="AUTOPOST_NATS_NAMESPACE", default=DEFAULT_NAMESPACE, show_default=True)
def tail(
    workspace: str | None,
    action: str | None,
    since: datetime | None,
    follow: bool,
    as_json: bool,
    nats_url: str,
    database_url: str | None,
    namespace: str,
) -> None:
    """Print the events of the audit stream in order, each once.

    Without --since it prints only new events; with --no-follow it prints the whole stream. Stop with Ctrl-C.
    """
    selector = None if workspace is None else _workspace(workspace, database_url)
    wanted = TailFilter(selector, None if action is None else Action(action), since, follow)
    try:
        asyncio.run(_tail(nats_url, Topology(namespace), wanted, as_json))
    except UnreadableError as exc:
        raise click.ClickException(str(exc)) from None


def _workspace(selector: str, database_url: str | None) -> UUID:
    with suppress(ValueError):
        return UUID(selector)
    if database_url is None:
        raise click.UsageError(
            "--workspace: give the id of the workspace, or set AUTOPOST_DATABASE_URL to look up its name"
        )
    return asyncio.run(_looked_up(selector, database_url))


async def _looked_up(selector: str, database_url: str) -> UUID:
    async with database_connected(database_url) as connection:
        return await choose_workspace(connection, selector)


async def _tail(nats_url: str, topology: Topology, wanted: TailFilter, as_json: bool) -> None:
    reading = asyncio.ensure_future(_print(nats_url, topology, wanted, as_json))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, reading.cancel)
    with suppress(asyncio.CancelledError):
        await reading


async def _print(nats_url: str, topology: Topology, wanted: TailFilter, as_json: bool) -> None:
    async with connected(nats_url) as js, aclosing(Tail(js, topology, wanted).read()) as received:
        async for one in received:
            click.echo(one.text if as_json else line(one))


def line(received: ReceivedEvent) -> str:
    """One readable line: time, action, result and ids."""
    event = received.event
    moment = datetime.fromisoformat(event["ts"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    words = [f"{moment}Z", f"{event['action']:<22}", f"{event['result']:<5}"]
    words += [f"{name.removesuffix('_id')}={event[name]}" for name in IDS if event.get(name)]
    if event.get("attempt"):
        words.append(f"attempt={event['attempt']}")
    error = event.get("error") or {}
    words += [f"{name}={error[name]}" for name in ("code", "message") if error.get(name)]
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(words))
