"""`autopost migrate up | status | verify`."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncpg
import click
import msgspec

from autopost_cli.schema.migrations import MigrationError, Status, migrate_status, migrate_up

__all__ = ["migrate", "migrate_up"]

T = TypeVar("T")

DATABASE = click.option(
    "--database-url",
    envvar="AUTOPOST_DATABASE_URL",
    required=True,
    help="The database; by default AUTOPOST_DATABASE_URL.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


@click.group()
def migrate() -> None:
    """Update the database schema to this version."""


@migrate.command()
@DATABASE
@JSON
def up(database_url: str, as_json: bool) -> None:
    """Apply pending changes. Safe to run several times at once."""
    applied = _run(migrate_up(database_url))
    if as_json:
        click.echo(msgspec.json.encode({"applied": applied}))
    else:
        click.echo("\n".join(f"applied {name}" for name in applied) or "nothing to apply")


@migrate.command()
@DATABASE
@JSON
def status(database_url: str, as_json: bool) -> None:
    """Show what is applied and what is pending; changes nothing."""
    _print(_run(migrate_status(database_url)), as_json)


@migrate.command()
@DATABASE
@JSON
def verify(database_url: str, as_json: bool) -> None:
    """Check that the database matches the schema files; exit code 1 if it does not."""
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
        click.echo("drifted: the schema was changed by hand since the last run of `autopost migrate up`")
    if found.clean:
        click.echo("clean")


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except (MigrationError, asyncpg.PostgresError, OSError) as exc:
        raise click.ClickException(str(exc)) from None
