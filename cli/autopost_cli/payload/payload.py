"""`autopost payload get`: read a stored raw payload.

Raw payloads contain texts of people, so each access is recorded as an event, with operator and reason, before the
payload is shown.
"""

import asyncio
import os
import sys
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import click
import msgspec
from autopost_runtime.config.load import ConfigError, ServiceConfig, load
from autopost_runtime.storage.objects import ObjectMissing, Objects, open_objects

from autopost_cli.operate.gateway import Row, connected
from autopost_cli.operate.operate import CommonOptions, changing, print_json, run
from autopost_cli.operate.selection import choose_workspace
from autopost_cli.operate.times import Duration, shown
from autopost_cli.payload.gateway import ROLE, note_payload_access

LONGEST = timedelta(hours=1)
STORE_TIMEOUT = timedelta(seconds=15)
"""Time limit for a request to the store."""

REFUSALS = {
    "not_found": "this workspace has no failure with this event id or payload_ref; `autopost why ID` shows them",
    "no_payload": "no payload was stored for this event",
    "expired": "the payload was deleted: raw payloads are kept for 14 days by default",
}


class StoreUnavailable(click.ClickException):
    def __init__(self, exc: Exception) -> None:
        super().__init__(
            f"cannot read from the object store ({type(exc).__name__}); check AUTOPOST_S3_ENDPOINT and the keys"
        )


@click.group()
def payload() -> None:
    """Read a stored raw payload: a platform's answer or a sender's request."""


@payload.command()
@click.argument("ref")
@click.option(
    "--expires", type=Duration(), default="5m", show_default=True, help="How long the link is valid; at most 1h."
)
@click.option("--print", "is_printed", is_flag=True, help="Print the payload instead of a link to it.")
@changing
def get(options: CommonOptions, ref: str, expires: timedelta, is_printed: bool) -> None:
    """Print a short-lived link to a raw payload. Records payload_accessed.

    REF is the payload_ref of an event, or the id of the event. AUTOPOST_S3_ENDPOINT, AUTOPOST_S3_BUCKET,
    AUTOPOST_S3_ACCESS_KEY and AUTOPOST_S3_SECRET_KEY name the object store. Anybody with the link can read the payload.
    """
    if expires > LONGEST:
        raise click.BadParameter("must be at most 1h", param_hint="--expires")
    _report(options, run(_get(options, ref, expires, is_printed)))


async def _get(options: CommonOptions, ref: str, expires: timedelta, is_printed: bool) -> Row:
    """The event is committed before the payload or link is returned; without either it is rolled back."""
    workspace = await _workspace(options, ref)
    async with open_objects(_store_of(options)) as objects, connected(options.database_url, ROLE) as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            noted = await note_payload_access(connection, workspace, options, ref, None if is_printed else expires)
            given = await _fetched(objects, noted, expires, is_printed) if noted["verdict"] == "noted" else noted
        except BaseException:
            await transaction.rollback()
            raise
        if options.dry_run or given["verdict"] != "noted":
            await transaction.rollback()
            return {name: value for name, value in given.items() if name not in ("url", "payload")}
        await transaction.commit()
        return given


async def _fetched(objects: Objects, noted: Row, expires: timedelta, is_printed: bool) -> Row:
    key = noted["payload_ref"]
    try:
        async with asyncio.timeout(STORE_TIMEOUT.total_seconds()):
            if is_printed:
                return noted | {"payload": msgspec.json.decode(await objects.get(key))}
            if await objects.exists(key):
                return noted | {"url": await objects.presign(key, expires)}
    except ObjectMissing:
        pass
    except Exception as exc:
        raise StoreUnavailable(exc) from None
    return noted | {"verdict": "expired"}


def _store_of(options: CommonOptions) -> ServiceConfig:
    try:
        config = load(ServiceConfig, {**os.environ, "AUTOPOST_DATABASE_URL": options.database_url})
    except ConfigError as wrong:
        raise click.UsageError(str(wrong)) from None
    if config.s3_endpoint is None or config.s3_access_key is None or config.s3_secret_key is None:
        raise click.UsageError(
            "set AUTOPOST_S3_ENDPOINT, AUTOPOST_S3_ACCESS_KEY and AUTOPOST_S3_SECRET_KEY of the object store"
        )
    return config


async def _workspace(options: CommonOptions, ref: str) -> UUID:
    """A payload_ref starts with the workspace id. Only a name needs a lookup, with the role of operators."""
    named, slash, _ = ref.partition("/")
    with suppress(ValueError):
        if options.workspace or slash:
            return UUID(options.workspace or named)
    async with connected(options.database_url) as connection:
        return await choose_workspace(connection, options.workspace)


def _report(options: CommonOptions, answer: Row) -> None:
    refusal = REFUSALS.get(answer["verdict"])
    if options.as_json:
        print_json({"dry_run": options.dry_run, **answer})
    elif refusal:
        click.echo(f"REF: {refusal}", err=True)
    elif options.dry_run:
        click.echo(f"{answer['payload_ref']} can be read. Dry run: no link was created and no access was recorded.")
    elif "payload" in answer:
        click.echo(msgspec.json.format(msgspec.json.encode(answer["payload"]), indent=2))
    else:
        click.echo(answer["url"])
        click.echo(f"The link works until {shown(answer['expires_at'])}, for anybody who has it.", err=True)
    sys.exit(1 if refusal else 0)
