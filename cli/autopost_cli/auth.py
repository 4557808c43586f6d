"""`autopost auth bind | list | rotate | key`: where the tokens of the bots lie, without ever showing one.

A secret comes from stdin or not at all: an argument would stay in the shell's history and in the list of processes.
"""

import asyncio
import re
import sys
from collections.abc import Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import click
import msgspec
from autopost_runtime.config import ConfigError, Secret
from autopost_runtime.sealing import Label, new_key, read_keys

from autopost_cli.auth_rotate import rotate
from autopost_cli.auth_store import Binding, bind_credential, list_credentials
from autopost_cli.migrate import DATABASE, JSON
from autopost_cli.operate import REASON
from autopost_cli.status_token import status_token

T = TypeVar("T")

WORKSPACE = click.option("--workspace", type=click.UUID, required=True, help="The id of the workspace.")
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
TELEGRAM_TOKEN = re.compile(r"([0-9]+):.+")
REFUSALS = {
    "not_found": "there is no such workspace",
    "bot_taken": "this bot is bound in another workspace already, and a bot belongs to one",
    "bot_bound": "this bot is bound here already, as {auth_ref}; bind that name again to rotate its token",
}


@click.group()
def auth() -> None:
    """Say where the tokens of the bots lie; never shows one."""


auth.add_command(rotate)
auth.add_command(status_token)


@auth.command()
@WORKSPACE
@click.option("--platform", required=True, help="telegram or max.")
@click.option("--auth-ref", required=True, help="The name by which channels refer to it.")
@click.option("--env", "variable", help="The token is in this environment variable of the services.")
@click.option("--file", "path", type=click.Path(path_type=Path), help="The token is in this file, for the services.")
@click.option("--sealed", is_flag=True, help="The token comes from stdin and is kept in the database, encrypted.")
@click.option("--bot-id", help="The provider's id of the bot. Telegram: taken from a sealed token by itself.")
@click.option("--operator", required=True, help="Who does this; goes into the event.")
@REASON
@DATABASE
@JSON
def bind(
    workspace: UUID,
    platform: str,
    auth_ref: str,
    variable: str | None,
    path: Path | None,
    sealed: bool,
    bot_id: str | None,
    operator: str,
    reason: str,
    database_url: str,
    as_json: bool,
) -> None:
    """Say where a token lies, for the first time or anew. Services hear it within seconds.

    Exactly one of --env, --file and --sealed. --sealed needs AUTOPOST_SECRETS_KEY, the same as the services have:

        autopost auth bind --sealed --workspace … --platform telegram --auth-ref news < token
    """
    if [variable is not None, path is not None, sealed].count(True) != 1:
        raise click.UsageError("exactly one of --env, --file and --sealed is needed")
    if sealed:
        binding = _sealed(Label(str(workspace), platform, auth_ref), bot_id)
    else:
        binding = Binding(secret_ref=_place(variable, path), bot_id=bot_id)
    answer = _run(bind_credential(database_url, workspace, platform, auth_ref, binding, operator, reason))
    _tell(answer, f"{auth_ref}: {answer['verdict']}, {binding.secret_ref}", as_json)


@auth.command("list")
@WORKSPACE
@DATABASE
@JSON
def list_(workspace: UUID, database_url: str, as_json: bool) -> None:
    """Show each credential: where its token lies, its bot, and since when; never the token."""
    found = _run(list_credentials(database_url, workspace))
    if as_json:
        click.echo(msgspec.json.encode({"credentials": found}))
        return
    rows = [("PLATFORM", "AUTH_REF", "SECRET", "BOT", "SINCE")]
    rows += [(one.platform, one.auth_ref, one.secret_ref, one.bot_id or "-", _shown(one.rotated_at)) for one in found]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@auth.command()
@JSON
def key(as_json: bool) -> None:
    """Print a fresh key for AUTOPOST_SECRETS_KEY.

    To replace one: give the services the new key and the old one as AUTOPOST_SECRETS_KEY_OLD, bind every sealed
    token again, then take the old key away.
    """
    fresh = new_key().reveal()
    click.echo(msgspec.json.encode({"key": fresh}) if as_json else fresh)


def _place(variable: str | None, path: Path | None) -> str:
    if path is not None:
        if not path.is_absolute():
            raise click.UsageError("--file: expected a whole path; the services may run in another folder")
        return f"file:{path}"
    if not VARIABLE.fullmatch(variable or ""):
        raise click.UsageError("--env: expected the name of a variable, like NEWS_BOT_TOKEN")
    return f"env:{variable}"


def _sealed(label: Label, bot_id: str | None) -> Binding:
    try:
        keys = read_keys()
    except ConfigError as wrong:
        raise click.ClickException(str(wrong)) from None
    if keys is None:
        raise click.ClickException("AUTOPOST_SECRETS_KEY is not set; `autopost auth key` makes one")
    secret = _from_stdin()
    token = TELEGRAM_TOKEN.fullmatch(secret.reveal()) if label.platform == "telegram" else None
    if token and bot_id not in (None, token[1]):
        raise click.UsageError("--bot-id is not the bot of this token")
    return Binding(secret_ref="sealed", sealed=keys.seal(secret, label), bot_id=token[1] if token else bot_id)  # noqa: S106  the kind of place


def _from_stdin() -> Secret:
    text = click.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.read()
    token: str = text.removesuffix("\n").removesuffix("\r")
    if not token or token.split() != [token]:
        raise click.UsageError("--sealed: expected the token on stdin, one word on one line")
    return Secret(token)


def _tell(answer: dict[str, Any], done: str, as_json: bool) -> None:
    refusal = REFUSALS.get(answer["verdict"])
    if as_json:
        click.echo(msgspec.json.encode(answer))
        sys.exit(1 if refusal else 0)
    if refusal:
        raise click.ClickException(refusal.format(**answer))
    click.echo(done)


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except (asyncpg.PostgresError, OSError) as exc:
        raise click.ClickException(str(exc)) from None
