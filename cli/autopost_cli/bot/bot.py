"""`autopost bot`: its rules, its chats, and the long-running actions that it shows."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
import msgspec

from autopost_cli.bot.api import BotApi
from autopost_cli.bot.chats import chats, release, retry, skip
from autopost_cli.bot.diff import diff
from autopost_cli.bot.gateway import bot_gateway
from autopost_cli.bot.history import LIMIT, log, unmatched, why
from autopost_cli.bot.rehearse import chat, lint_command, test_command
from autopost_cli.bot.rules import rules
from autopost_cli.bot.webhook import subscribe, subscriptions, unsubscribe
from autopost_cli.operate.gateway import Row
from autopost_cli.operate.operate import CommonOptions, print_json, print_table, reading, run
from autopost_cli.schema.migrate import JSON

LISTED = ("chat", "action_id", "action_type", "status", "created_at", "updated_at")
COLUMNS = ("actionId", "actionType", "status", "displayText", "createdAt", "updatedAt")


def _payload(_: click.Context, option: click.Parameter, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except msgspec.DecodeError as exc:
        raise click.BadParameter(f"must be a JSON object: {exc}", param=option) from exc


def calling(command: Callable[..., None]) -> Callable[..., None]:
    """``command(api, …)``: with the address of the service and the secret of an endpoint."""

    @click.option("--url", envvar="AUTOPOST_BOT_URL", required=True, help="Where the bot service listens.")
    @click.option(
        "--secret",
        envvar="AUTOPOST_SECRET",
        required=True,
        help="The secret of an endpoint of kind bot_api. Better in AUTOPOST_SECRET: arguments are visible to others.",
    )
    @click.option("--workspace", required=True, metavar="ID", help="The workspace of the endpoint.")
    @wraps(command)
    def called(url: str, secret: str, workspace: str, **given: Any) -> None:
        command(BotApi(url.rstrip("/"), secret, workspace), **given)

    return called


@click.group()
def bot() -> None:
    """The shop bot: its rules, its chats, its webhook; long-running actions, and the stream of a chat."""


RULES = (rules, lint_command, test_command, chat, diff)
CHATS = (log, why, unmatched, chats, release, retry, skip)
for command in (*RULES, *CHATS, subscribe, subscriptions, unsubscribe):
    bot.add_command(command)


@bot.command()
@LIMIT
@reading
def actions(options: CommonOptions, limit: int) -> None:
    """List the actions under way in all chats, and those that ran into their timeout within an hour."""

    async def work() -> list[Row]:
        async with bot_gateway(options) as gateway:
            return await gateway.actions(limit)

    rows = run(work())
    if options.as_json:
        print_json({"actions": rows})
    else:
        print_table(rows, LISTED)


@bot.group()
def action() -> None:
    """List, start or end actions of a chat, as an integration does."""


@action.command("list")
@click.option("--chat", required=True, help="The id of the chat.")
@JSON
@calling
def list_of_chat(api: BotApi, chat: str, as_json: bool) -> None:
    """List the actions under way in a chat as its clients see them, the newest change first."""
    rows = api.actions(chat)
    if as_json:
        print_json({"actions": rows})
    else:
        print_table(rows, COLUMNS)


def _about_an_action(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        JSON,
        click.option("--payload", callback=_payload, help="A JSON object, at most 16 KiB."),
        click.option("--text", help="What the chat shows instead of the text of the type, at most 300 characters."),
        click.option("--id", "action_id", required=True, help="The id of the action; a UUID of yours."),
        click.option("--chat", required=True, help="The id of the chat."),
    ):
        command = option(command)
    return calling(command)


@action.command()
@click.option("--type", "action_type", required=True, help="Like transcribe_audio, summarize or a type of yours.")
@_about_an_action
def start(api: BotApi, action_type: str, as_json: bool, **fields: Any) -> None:
    """Start an action. A repeated start moves its time only."""
    _print(api.start({**_given(**fields), "actionType": action_type}), as_json)


@action.command()
@click.option("--status", type=click.Choice(["done", "error"]), default="done", show_default=True)
@_about_an_action
def update(api: BotApi, status: str, as_json: bool, **fields: Any) -> None:
    """End an action. Its first end stays."""
    _print(api.update({**_given(**fields), "status": status}), as_json)


@bot.command()
@click.argument("chat")
@click.option(
    "--after", type=click.IntRange(0), help="Begin with the changes after this number. Default: with new ones."
)
@JSON
@calling
def watch(api: BotApi, chat: str, after: int | None, as_json: bool) -> None:
    """Follow the stream of a chat until Ctrl-C. After an interruption it goes on where it ended."""
    for event in api.watch(chat, after=after):
        click.echo(msgspec.json.encode(event).decode() if as_json else _line(event))


def _line(event: dict[str, Any]) -> str:
    match event:
        case {"type": "bot_action", "action": shown}:
            return f"{shown['updatedAt']}  {shown['actionType']} {shown['actionId']}: {shown['status']}"
        case {"type": "message", "message": shown}:
            return f"{shown['createdAt']}  message {shown['messageId']}: {shown['text'] or ''}"
        case _:
            return f"{event.get('type')}: read the chat anew with `autopost bot action list`"


def _given(*, chat: str, action_id: str, text: str | None, payload: dict[str, Any] | None) -> dict[str, Any]:
    fields = {"chatId": chat, "actionId": action_id, "displayText": text, "payload": payload}
    return {name: value for name, value in fields.items() if value is not None}


def _print(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(shown)
    else:
        print_table([shown], COLUMNS)
