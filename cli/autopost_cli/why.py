"""`autopost why ID`: what holds a post, a delivery or a channel, until when, and what would release it."""

import sys
from typing import Any
from uuid import UUID

import click

from autopost_cli.migrate import DATABASE, JSON
from autopost_cli.operate import print_json, run
from autopost_cli.operate_gateway import Connection, Row, connected
from autopost_cli.why_text import lines
from autopost_cli.workspace import choose_workspace

SHOWN = 20
ALL = 1_000_000
KINDS = """\
Understood are: the id of a message, a delivery, a channel, a staged post or a run; a trace id; the source_ref of a \
post; a channel's address on its platform."""


@click.command(epilog=KINDS)
@click.argument("identifier", metavar="ID")
@click.option("--workspace", metavar="ID|NAME", help="Look only here; otherwise in all of them.")
@click.option("--all", "everything", is_flag=True, help=f"Every entry of a list, not the first {SHOWN}.")
@DATABASE
@JSON
def why(identifier: str, workspace: str | None, everything: bool, database_url: str, as_json: bool) -> None:
    """Say what holds it, since when, until when, and what would release it; of what has ended, how and why.

    Changes nothing. Exit 1 when nothing is known by this ID.
    """
    answer = run(_ask(database_url, identifier, workspace, ALL if everything else SHOWN))
    if as_json:
        print_json({"id": identifier, **answer})
    elif answer["found"]:
        click.echo("\n".join(lines(answer)))
    else:
        click.echo(f"Nothing is known by {identifier!r}. {KINDS}", err=True)
    sys.exit(0 if answer["found"] else 1)


async def _ask(database_url: str, identifier: str, workspace: str | None, limit: int) -> Row:
    async with connected(database_url) as connection:
        chosen = None if workspace is None else await choose_workspace(connection, workspace)
        return await _why(connection, identifier, chosen, limit)


async def _why(connection: Connection, identifier: str, workspace: UUID | None, limit: int) -> Row:
    answer: dict[str, Any] = await connection.fetchval("SELECT why($1, $2, $3)", identifier, workspace, limit)
    return answer
