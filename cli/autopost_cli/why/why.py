"""`autopost why ID`: what a post, a publication or a channel waits for, until when, and what would release it."""

import sys
from typing import Any
from uuid import UUID

import click
from autopost_runtime.secrets.redaction import quoted

from autopost_cli.operate.gateway import Connection, Row, connected
from autopost_cli.operate.operate import print_json, run
from autopost_cli.operate.selection import choose_workspace
from autopost_cli.schema.migrate import DATABASE, JSON
from autopost_cli.why.text import lines

SHOWN = 20
ALL = 1_000_000
LONGEST_ID = 256
"""The longest id to show. A source_ref is redacted, since it may be a URL with a password."""
KINDS = """\
ID can be the id of a publication, a message, a delivery, a channel, a staged post or a run; a trace id; the \
source_ref of a post; a channel's address on its platform; the id of a reply of the shop bot, or the provider's id of \
the message that it answers (mid.…)."""


@click.command(epilog=KINDS)
@click.argument("identifier", metavar="ID")
@click.option("--workspace", metavar="ID|NAME", help="Search only in this workspace; by default in all.")
@click.option("--all", "everything", is_flag=True, help=f"Show all entries of each list, not only the first {SHOWN}.")
@DATABASE
@JSON
def why(identifier: str, workspace: str | None, everything: bool, database_url: str, as_json: bool) -> None:
    """Explain what something waits for, since when, until when, and what would release it; or how and why it ended.

    Changes nothing. Exit code 1 if nothing has this ID.
    """
    answer = run(_ask(database_url, identifier, workspace, ALL if everything else SHOWN))
    if as_json:
        print_json({"id": quoted(identifier, LONGEST_ID), **answer})
    elif answer["found"]:
        click.echo("\n".join(lines(answer)))
    else:
        click.echo(f"Nothing found for {quoted(identifier, LONGEST_ID)!r}. {KINDS}", err=True)
    sys.exit(0 if answer["found"] else 1)


async def _ask(database_url: str, identifier: str, workspace: str | None, limit: int) -> Row:
    async with connected(database_url) as connection:
        chosen = None if workspace is None else await choose_workspace(connection, workspace)
        return await _why(connection, identifier, chosen, limit)


async def _why(connection: Connection, identifier: str, workspace: UUID | None, limit: int) -> Row:
    answer: dict[str, Any] = await connection.fetchval("SELECT why($1, $2, $3)", identifier, workspace, limit)
    return answer
