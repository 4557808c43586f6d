"""`autopost bot chats | release | retry | skip`: chats in which something waits."""

import sys
from collections.abc import Awaitable, Callable
from uuid import UUID

import click

from autopost_cli.bot.gateway import BotGateway, bot_gateway
from autopost_cli.bot.history import LIMIT
from autopost_cli.operate.gateway import Row
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, reading, run

LISTED = ("chat", "status", "since", "until", "updates", "reply_id", "attempt", "code")
DONE = ("released", "retried", "skipped")


@click.command()
@LIMIT
@reading
def chats(options: CommonOptions, limit: int) -> None:
    """List chats that wait for an answer, are held by an operator, or have stopped the bot."""

    async def work() -> list[Row]:
        async with bot_gateway(options) as gateway:
            return await gateway.chats(limit)

    rows = run(work())
    if options.as_json:
        print_json({"chats": rows})
    else:
        print_table(rows, LISTED)


@click.command()
@click.argument("chat")
@changing
def release(options: CommonOptions, chat: str) -> None:
    """Give a chat that was handed to an operator back to the bot. CHAT is its token. Records config_changed."""
    _turn(options, "chat", chat, lambda gateway: gateway.end_handoff(chat))


@click.command()
@click.argument("reply", type=click.UUID)
@changing
def retry(options: CommonOptions, reply: UUID) -> None:
    """Send a failed reply again: five more attempts. Records config_changed."""
    _turn(options, "reply_id", str(reply), lambda gateway: gateway.turn_reply(reply, "retry"))


@click.command()
@click.argument("reply", type=click.UUID)
@changing
def skip(options: CommonOptions, reply: UUID) -> None:
    """Give a waiting reply up, so that the chat goes on with the next message. Records bot_reply_failed."""
    _turn(options, "reply_id", str(reply), lambda gateway: gateway.turn_reply(reply, "skip"))


def _turn(options: CommonOptions, name: str, value: str, call: Callable[[BotGateway], Awaitable[str]]) -> None:
    async def work() -> str:
        async with bot_gateway(options) as gateway, gateway.transaction(dry_run=options.dry_run):
            return await call(gateway)

    verdict = run(work())
    if options.as_json:
        print_json({"dry_run": options.dry_run, name: value, "verdict": verdict})
    else:
        print_table([{name: value, "verdict": verdict}], (name, "verdict"))
        if options.dry_run:
            click.echo("Dry run: nothing was changed.")
    sys.exit(0 if verdict in DONE else 1)
