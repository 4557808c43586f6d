"""`autopost events tail`: what happens, as it happens, from the audit stream."""

import asyncio
import signal
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import click
from autopost_contracts.events import Action
from autopost_contracts.subjects import DEFAULT_NAMESPACE, Topology
from autopost_runtime.values import Unreadable, parse

from autopost_cli.events_stream import Tail, Told, UnreadableError, Wanted, connected
from autopost_cli.operate_gateway import connected as database_connected
from autopost_cli.workspace import choose_workspace

IDS = ("delivery_id", "message_id", "channel_id")


class Since(click.ParamType[datetime]):
    """A moment, or how long ago it was."""

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
        except (Unreadable, OverflowError):
            self.fail(f"{value!r}: expected a time like 2026-01-31T09:30 (UTC) or a duration like 15m", param, ctx)


@click.group()
def events() -> None:
    """Watch what happens."""


@events.command()
@click.option("--workspace", metavar="ID|NAME", help="Of this workspace alone; a name is looked up in the database.")
@click.option(
    "--action",
    metavar="ACTION",
    type=click.Choice([action.value for action in Action]),
    help="Only what is called so: sent, retry_scheduled, dead_letter, …",
)
@click.option("--since", type=Since(), help="From then on: 2026-01-31T09:30 (UTC if it does not say), or 15m, 2h, 7d.")
@click.option("--follow/--no-follow", default=True, help="Wait for more (default), or end with what there is.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, as it is in the stream.")
@click.option(
    "--nats-url",
    envvar="AUTOPOST_NATS_URL",
    required=True,
    help="The NATS server to read from; AUTOPOST_NATS_URL if not given.",
)
@click.option("--database-url", envvar="AUTOPOST_DATABASE_URL", help="Where a workspace is looked up by its name.")
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
    """Show the events of the audit stream, each once, in their order.

    Without --since only what happens from now on, or with --no-follow everything there is. Ctrl-C ends it.
    """
    meant = None if workspace is None else _workspace(workspace, database_url)
    wanted = Wanted(meant, None if action is None else Action(action), since, follow)
    try:
        asyncio.run(_tail(nats_url, Topology(namespace), wanted, as_json))
    except UnreadableError as exc:
        raise click.ClickException(str(exc)) from None


def _workspace(meant: str, database_url: str | None) -> UUID:
    with suppress(ValueError):
        return UUID(meant)
    if database_url is None:
        raise click.UsageError("--workspace: give its id, or AUTOPOST_DATABASE_URL to have its name looked up")
    return asyncio.run(_looked_up(meant, database_url))


async def _looked_up(meant: str, database_url: str) -> UUID:
    async with database_connected(database_url) as connection:
        return await choose_workspace(connection, meant)


async def _tail(nats_url: str, topology: Topology, wanted: Wanted, as_json: bool) -> None:
    reading = asyncio.ensure_future(_print(nats_url, topology, wanted, as_json))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, reading.cancel)
    with suppress(asyncio.CancelledError):
        await reading


async def _print(nats_url: str, topology: Topology, wanted: Wanted, as_json: bool) -> None:
    async with connected(nats_url) as js, aclosing(Tail(js, topology, wanted).read()) as told:
        async for one in told:
            click.echo(one.text if as_json else line(one))


def line(told: Told) -> str:
    """For people: when, what, how it ended, about what."""
    event = told.event
    moment = datetime.fromisoformat(event["ts"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    words = [f"{moment}Z", f"{event['action']:<22}", f"{event['result']:<5}"]
    words += [f"{name.removesuffix('_id')}={event[name]}" for name in IDS if event.get(name)]
    if event.get("attempt"):
        words.append(f"attempt={event['attempt']}")
    error = event.get("error") or {}
    words += [f"{name}={error[name]}" for name in ("code", "message") if error.get(name)]
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(words))
