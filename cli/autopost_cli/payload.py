"""`autopost payload get`: what a platform really answered, or a sender really sent, for who has a reason to read it.

Raw payloads hold what people wrote, so who read which and why is an event, and it is there before anything is shown.
"""

import asyncio
import os
import sys
from datetime import timedelta
from uuid import UUID

import click
import msgspec
from autopost_runtime.config import ConfigError, ServiceConfig, load
from autopost_runtime.objects import ObjectMissing, Objects, open_objects

from autopost_cli.operate import Order, changing, print_json, run
from autopost_cli.operate_gateway import Row, connected
from autopost_cli.operate_times import Duration, shown
from autopost_cli.payload_gateway import note_payload_access
from autopost_cli.workspace import choose_workspace

LONGEST = timedelta(hours=1)
LIMIT = timedelta(seconds=15)
"""For what the store is asked."""

REFUSALS = {
    "not_found": "no failure of this workspace has this event id or payload_ref; `autopost why ID` shows them",
    "no_payload": "nothing was stored for this event",
    "expired": "it is no longer in the store: raw payloads are kept for 14 days, unless configured otherwise",
}


class StoreAway(click.ClickException):
    def __init__(self, exc: Exception) -> None:
        super().__init__(f"AUTOPOST_S3_ENDPOINT: the store cannot be asked ({type(exc).__name__})")


@click.group()
def payload() -> None:
    """Read what a platform really answered, or a sender really sent."""


@payload.command()
@click.argument("ref")
@click.option(
    "--expires", type=Duration(), default="5m", show_default=True, help="How long the link is good; 1h at most."
)
@click.option("--print", "is_printed", is_flag=True, help="Print the payload itself instead of a link to it.")
@changing
def get(order: Order, ref: str, expires: timedelta, is_printed: bool) -> None:
    """Give a link to a raw payload, good for a short time. Leaves payload_accessed.

    REF is the payload_ref of an event, or the id of the event. Where it lies is said by AUTOPOST_S3_ENDPOINT,
    AUTOPOST_S3_BUCKET, AUTOPOST_S3_ACCESS_KEY and AUTOPOST_S3_SECRET_KEY. Whoever has the link can read the payload.
    """
    if expires > LONGEST:
        raise click.BadParameter("a link to a raw payload is good for 1h at most", param_hint="--expires")
    _tell(order, run(_get(order, ref, expires, is_printed)))


async def _get(order: Order, ref: str, expires: timedelta, is_printed: bool) -> Row:
    """The event is committed before the payload or the link leaves this function; it stays away if there is neither."""
    async with open_objects(_store_of(order)) as objects, connected(order.database_url) as connection:
        named = None if order.workspace else _workspace_in(ref)
        workspace = named or await choose_workspace(connection, order.workspace)
        transaction = connection.transaction()
        await transaction.start()
        try:
            noted = await note_payload_access(connection, workspace, order, ref, None if is_printed else expires)
            given = await _fetched(objects, noted, expires, is_printed) if noted["verdict"] == "noted" else noted
        except BaseException:
            await transaction.rollback()
            raise
        if order.dry_run or given["verdict"] != "noted":
            await transaction.rollback()
            return {name: value for name, value in given.items() if name not in ("url", "payload")}
        await transaction.commit()
        return given


async def _fetched(objects: Objects, noted: Row, expires: timedelta, is_printed: bool) -> Row:
    key = noted["payload_ref"]
    try:
        async with asyncio.timeout(LIMIT.total_seconds()):
            if is_printed:
                return noted | {"payload": msgspec.json.decode(await objects.get(key))}
            if await objects.exists(key):
                return noted | {"url": await objects.presign(key, expires)}
    except ObjectMissing:
        pass
    except Exception as exc:
        raise StoreAway(exc) from None
    return noted | {"verdict": "expired"}


def _store_of(order: Order) -> ServiceConfig:
    try:
        config = load(ServiceConfig, {**os.environ, "AUTOPOST_DATABASE_URL": order.database_url})
    except ConfigError as wrong:
        raise click.UsageError(str(wrong)) from None
    if config.s3_endpoint is None or config.s3_access_key is None or config.s3_secret_key is None:
        raise click.UsageError(
            "AUTOPOST_S3_ENDPOINT, AUTOPOST_S3_ACCESS_KEY and AUTOPOST_S3_SECRET_KEY: expected where payloads are kept"
        )
    return config


def _workspace_in(ref: str) -> UUID | None:
    """A payload_ref begins with it."""
    first, slash, _ = ref.partition("/")
    try:
        return UUID(first) if slash else None
    except ValueError:
        return None


def _tell(order: Order, answer: Row) -> None:
    refusal = REFUSALS.get(answer["verdict"])
    if order.as_json:
        print_json({"dry_run": order.dry_run, **answer})
    elif refusal:
        click.echo(f"REF: {refusal}", err=True)
    elif order.dry_run:
        click.echo(f"{answer['payload_ref']} can be read. Dry run: no link was made, and nothing was noted.")
    elif "payload" in answer:
        click.echo(msgspec.json.format(msgspec.json.encode(answer["payload"]), indent=2))
    else:
        click.echo(answer["url"])
        click.echo(f"Good until {shown(answer['expires_at'])} for whoever has it.", err=True)
    sys.exit(1 if refusal else 0)
