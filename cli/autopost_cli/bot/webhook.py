"""`autopost bot subscribe | subscriptions | unsubscribe`: where MAX sends the updates of the bot to."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec
from autopost_adapters.max.api import PUBLIC_URL
from autopost_adapters.max.send import MaxAdapter
from autopost_contracts.outcomes import Failed
from autopost_runtime.config.load import ConfigError, Secret
from autopost_runtime.http.client import HttpClient
from autopost_runtime.secrets.credentials import Credential, reveal
from autopost_runtime.secrets.sealing import Label, Unopenable, read_keys

from autopost_cli.operate.gateway import OperatorGateway, Row
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, reading, run
from autopost_cli.operate.selection import operator_gateway

PATH = "/v1/bot/max"
TYPES = "message_created,message_callback,bot_started,bot_stopped"
PATIENCE = timedelta(seconds=10)
NO_BOT = "the workspace has no bot; insert a row into bot_settings first"

URL = click.option("--url", required=True, help=f"The public address of ingest's webhook, https://…{PATH}.")


@click.command()
@URL
@click.option("--types", default=TYPES, show_default=True, help="Kinds of updates, with commas.")
@click.option(
    "--secret",
    envvar="AUTOPOST_WEBHOOK_SECRET",
    required=True,
    help="The secret of the bot_webhook endpoint. Better in AUTOPOST_WEBHOOK_SECRET: arguments are visible to others.",
)
@changing
def subscribe(options: CommonOptions, url: str, types: str, secret: str) -> None:
    """Let MAX send the updates of the bot to ingest; again after MAX has unsubscribed it. Records config_changed."""
    _check_address(url)
    wanted = [kind.strip() for kind in types.split(",") if kind.strip()]

    async def work() -> Row:
        async with _bot(options, secret) as bot:
            if options.dry_run:
                return {"url": url, "subscriptions": await bot.listed()}
            _ended(await bot.platform.subscribe(bot.token, url, wanted, Secret(secret)))
            await bot.gateway.set_bot_webhook(url)
            return {"url": url, "subscriptions": await bot.noted()}

    _report(options, run(work()))


@click.command()
@reading
def subscriptions(options: CommonOptions) -> None:
    """List where MAX sends the updates of the bot to."""

    async def work() -> Row:
        async with _bot(options) as bot:
            return {"url": bot.webhook_url, "subscriptions": await bot.listed()}

    _report(options, run(work()))


@click.command()
@URL
@changing
def unsubscribe(options: CommonOptions, url: str) -> None:
    """Let MAX send no more updates to this address. Records config_changed if it was the bot's."""

    async def work() -> Row:
        async with _bot(options) as bot:
            if not options.dry_run:
                _ended(await bot.platform.unsubscribe(bot.token, url))
                if url == bot.webhook_url:
                    await bot.gateway.set_bot_webhook(None)
            return {"url": url, "subscriptions": await (bot.listed() if options.dry_run else bot.noted())}

    _report(options, run(work()))


class _Bot(msgspec.Struct, frozen=True):
    gateway: OperatorGateway
    platform: MaxAdapter
    token: Secret
    webhook_url: str | None

    async def listed(self) -> list[Row]:
        found = await self.platform.subscriptions(self.token)
        if isinstance(found, Failed):
            raise _refused(found)
        return [msgspec.to_builtins(one) for one in found]

    async def noted(self) -> list[Row]:
        """The alert about a lost webhook ends without waiting for the next check of the bot service."""
        found = await self.listed()
        await self.gateway.note_webhooks(found)
        return found


@asynccontextmanager
async def _bot(options: CommonOptions, secret: str | None = None) -> AsyncIterator[_Bot]:
    async with operator_gateway(options) as gateway, HttpClient(ca_bundle=_bundle()) as http:
        access = await gateway.read_bot_access(sha256(secret.encode()).hexdigest() if secret else None)
        if access is None:
            raise click.ClickException(NO_BOT)
        if access.pop("has_secret") is False:
            raise click.UsageError(
                "--secret: not the secret of an enabled bot_webhook endpoint of this workspace; "
                "ingest would answer 401 to every update"
            )
        url = access.pop("webhook_url")
        token = _token(gateway, Credential(**access))
        address = os.environ.get("AUTOPOST_MAX_API_URL") or PUBLIC_URL
        yield _Bot(gateway, MaxAdapter(http, address, PATIENCE, PATIENCE), token, url)


def _bundle() -> Path | None:
    path = os.environ.get("AUTOPOST_CA_BUNDLE")
    return Path(path) if path else None


def _token(gateway: OperatorGateway, bound: Credential) -> Secret:
    try:
        return reveal(bound, Label(str(gateway.workspace), "max", bound.auth_ref), os.environ, read_keys(os.environ))
    except (Unopenable, ConfigError) as exc:
        raise click.ClickException(
            f"the token {bound.auth_ref} cannot be read here: {exc}; run this where the services find their tokens"
        ) from None


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.UsageError("--url: must be an address like https://shop.example" + PATH)
    if not parts.path.endswith(PATH):
        click.echo(f"Note: ingest receives updates at {PATH}; this address has the path {parts.path or '/'}.", err=True)


def _ended(failed: Failed | None) -> None:
    if failed is not None:
        raise _refused(failed)


def _refused(failed: Failed) -> click.ClickException:
    words = f": {failed.message}" if failed.message else ""
    return click.ClickException(f"MAX refused ({failed.code}){words}")


def _report(options: CommonOptions, done: Row) -> None:
    if options.as_json:
        print_json({"dry_run": options.dry_run, **done})
        return
    if done["subscriptions"]:
        print_table(
            [{"url": one["url"], "types": ", ".join(one["update_types"] or ["all"])} for one in done["subscriptions"]],
            ("url", "types"),
        )
    else:
        click.echo("MAX sends the updates of this bot nowhere; `autopost bot subscribe --url …` subscribes a webhook.")
    others = [one["url"] for one in done["subscriptions"] if one["url"] != done["url"]]
    if done["url"] and others:
        click.echo(f"Note: MAX also sends them to {', '.join(others)}; `autopost bot unsubscribe --url …` ends that.")
    if options.dry_run:
        click.echo("Dry run: nothing was changed.")
