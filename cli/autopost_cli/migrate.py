"""`autopost migrate up | status | verify`."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncpg
import click
import msgspec

from autopost_cli.migrations import MigrationError, Status, migrate_status, migrate_up

__all__ = ["migrate", "migrate_up"]

T = TypeVar("T")

DATABASE = click.option(
    "--database-url",
    envvar="AUTOPOST_DATABASE_URL",
    required=True,
    help="The database to work on; AUTOPOST_DATABASE_URL if not given.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


@click.group()
def migrate() -> None:
    """Bring the database to the schema of this version."""


@migrate.command()
@DATABASE
@JSON
def up(database_url: str, as_json: bool) -> None:
    """Apply what is missing. Safe to run from several places at once."""
    applied = _run(migrate_up(database_url))
    if as_json:
        click.echo(msgspec.json.encode({"applied": applied}))
    else:
        click.echo("\n".join(f"applied {name}" for name in applied) or "nothing to apply")


@migrate.command()
@DATABASE
@JSON
def status(database_url: str, as_json: bool) -> None:
    """Say what is applied and what is not; changes nothing."""
    _print(_run(migrate_status(database_url)), as_json)


@migrate.command()
@DATABASE
@JSON
def verify(database_url: str, as_json: bool) -> None:
    """Exit 1 unless the database is exactly what the files describe."""
    found = _run(migrate_status(database_url))
    _print(found, as_json)
    sys.exit(0 if found.clean else 1)


def _print(found: Status, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode({"clean": found.clean, **msgspec.structs.asdict(found)}))
        return
    click.echo(f"{len(found.applied)} migrations applied, {len(found.pending)} pending")
    for label in ("pending", "changed", "outdated"):
        for name in getattr(found, label):
            click.echo(f"{label}: {name}")
    if found.drifted:
        click.echo("drifted: the catalog differs from what the last run left; somebody changed it by hand")
    if found.clean:
        click.echo("clean")


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except (MigrationError, asyncpg.PostgresError, OSError) as exc:
        raise click.ClickException(str(exc)) from None
