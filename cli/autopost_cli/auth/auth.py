"""`autopost auth bind | list | rotate | key`: credentials of bots; a token is never shown.

A secret is read from stdin only: an argument would be visible in the shell history and the process list.
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
from autopost_runtime.config.load import ConfigError, Secret
from autopost_runtime.secrets.sealing import Label, new_key, read_keys

from autopost_cli.auth.bot import bot_of, secret_at
from autopost_cli.auth.gateway import Binding, bind_credential, list_credentials
from autopost_cli.auth.rotate import rotate
from autopost_cli.auth.status_token import status_token
from autopost_cli.operate.operate import REASON
from autopost_cli.schema.migrate import DATABASE, JSON

T = TypeVar("T")

WORKSPACE = click.option("--workspace", type=click.UUID, required=True, help="The id of the workspace.")
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
REFUSALS = {
    "not_found": "workspace not found; `autopost workspace list` shows all workspaces",
    "bot_taken": "this bot is already bound in another workspace; a bot can belong to one workspace only",
    "bot_bound": "this bot is already bound here as {auth_ref}; to replace its token, bind {auth_ref} again",
}


@click.group()
def auth() -> None:
    """Manage bot credentials and status tokens; never shows a stored secret."""


auth.add_command(rotate)
auth.add_command(status_token)


@auth.command()
@WORKSPACE
@click.option("--platform", required=True, help="telegram or max.")
@click.option("--auth-ref", required=True, help="The name of the credential; channels refer to it.")
@click.option("--env", "variable", help="Read the token from this environment variable of the services.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    help="Read the token from this file on the machines of the services.",
)
@click.option("--sealed", is_flag=True, help="Read the token from stdin and store it encrypted in the database.")
@click.option("--bot-id", help="Refuse a token of any other bot. Compared if this command can read the token.")
@click.option("--operator", required=True, help="Who makes this change; recorded in the event.")
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
    """Set where the token of a credential is stored, or replace it. The services use it within seconds.

    A bot belongs to one workspace. If this command can read the token, it detects the bot: from a Telegram token
    itself, or with a request to MAX at AUTOPOST_MAX_API_URL. Otherwise the dispatcher detects it at first use. The
    token of a variable or a file may change later: the dispatcher detects the bot of each new one, and
    pauses the channels if the bot is already used by another workspace.

    Give exactly one of --env, --file and --sealed. --sealed needs the same AUTOPOST_SECRETS_KEY as the services:

        autopost auth bind --sealed --workspace … --platform telegram --auth-ref news < token
    """
    if [variable is not None, path is not None, sealed].count(True) != 1:
        raise click.UsageError("give exactly one of --env, --file and --sealed")
    if sealed:
        binding = _sealed(Label(str(workspace), platform, auth_ref), bot_id)
    else:
        place = _place(variable, path)
        binding = Binding(secret_ref=place, bot_id=bot_of(platform, secret_at(variable, path), bot_id))
    answer = _run(bind_credential(database_url, workspace, platform, auth_ref, binding, operator, reason))
    _report(answer, f"{auth_ref}: {answer['verdict']}, {binding.secret_ref}", as_json)


@auth.command("list")
@WORKSPACE
@DATABASE
@JSON
def list_(workspace: UUID, database_url: str, as_json: bool) -> None:
    """List credentials: where each token is stored, its bot, and the time of the last change; never the token."""
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
    """Generate a key for AUTOPOST_SECRETS_KEY and print it.

    To replace a key: set the new key as AUTOPOST_SECRETS_KEY and the old one as AUTOPOST_SECRETS_KEY_OLD for all
    services, bind every sealed token again, then remove AUTOPOST_SECRETS_KEY_OLD.
    """
    fresh = new_key().reveal()
    click.echo(msgspec.json.encode({"key": fresh}) if as_json else fresh)


def _place(variable: str | None, path: Path | None) -> str:
    if path is not None:
        if not path.is_absolute():
            raise click.UsageError("--file must be an absolute path: the services may run in another folder")
        return f"file:{path}"
    if not VARIABLE.fullmatch(variable or ""):
        raise click.UsageError("--env must be the name of an environment variable, for example NEWS_BOT_TOKEN")
    return f"env:{variable}"


def _sealed(label: Label, bot_id: str | None) -> Binding:
    try:
        keys = read_keys()
    except ConfigError as wrong:
        raise click.ClickException(str(wrong)) from None
    if keys is None:
        raise click.ClickException("AUTOPOST_SECRETS_KEY is not set; `autopost auth key` generates one")
    secret = _from_stdin()
    bot = bot_of(label.platform, secret, bot_id)
    return Binding(secret_ref="sealed", sealed=keys.seal(secret, label), bot_id=bot)  # noqa: S106  the kind of place


def _from_stdin() -> Secret:
    text = click.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.read()
    token: str = text.removesuffix("\n").removesuffix("\r")
    if not token or token.split() != [token]:
        raise click.UsageError("--sealed: stdin must contain the token on one line, without spaces")
    return Secret(token)


def _report(answer: dict[str, Any], done: str, as_json: bool) -> None:
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
