"""`autopost dlq list | show | retry`: publications that ended on `delivery.commands.dlq`.

Read from the outbox in the database, so it works without NATS. Dead deliveries of posts are in `autopost queue`.
"""

import sys
from typing import Any
from uuid import UUID

import click

from autopost_cli.operate.gateway import OperatorGateway, Row
from autopost_cli.operate.operate import (
    CommonOptions,
    changing,
    print_json,
    print_table,
    reading,
    report_results,
    run,
)
from autopost_cli.operate.selection import operator_gateway

COLUMNS = ("at", "publication_id", "version", "error_type", "code", "attempts", "channel", "status", "message")
RESULTS = ("publication_id", "verdict", "status", "error_type")
ERROR_TYPES = (
    *("bot_not_in_channel", "channel_restricted", "rate_limit", "file_id_expired", "media_group", "content"),
    "platform",
)
MOST = 10_000

ERROR_TYPE = click.option("--error-type", type=click.Choice(ERROR_TYPES), help="Only those of this type.")


@click.group()
def dlq() -> None:
    """List, show and retry the dead letters of publications: those that failed for good, or lost their file."""


@dlq.command("list")
@ERROR_TYPE
@click.option("--all", "everything", is_flag=True, help="Also those that somebody has dealt with since.")
@click.option("--limit", type=click.IntRange(1, MOST), default=100, show_default=True)
@reading
def list_(options: CommonOptions, error_type: str | None, everything: bool, limit: int) -> None:
    """List dead letters, newest first."""
    found = run(_letters(options, None, error_type, not everything, limit))
    if options.as_json:
        print_json({"dead_letters": found})
    elif found:
        print_table(found, COLUMNS)
    else:
        click.echo("No dead letters.")


@dlq.command()
@click.argument("publication", type=click.UUID)
@reading
def show(options: CommonOptions, publication: UUID) -> None:
    """Show all dead letters of a PUBLICATION, newest first. Exit code 1 if it has none."""
    found = run(_letters(options, publication, None, False, MOST))
    if options.as_json:
        print_json({"dead_letters": found})
    for row in () if options.as_json else found:
        _show(row)
    if not found and not options.as_json:
        click.echo(
            f"Publication {publication} has no dead letter; `autopost why {publication}` tells its state.", err=True
        )
    sys.exit(0 if found else 1)


@dlq.command()
@click.argument("publications", metavar="[PUBLICATION]...", nargs=-1, type=click.UUID)
@click.option("--all", "everything", is_flag=True, help="All that nobody has dealt with; --error-type narrows it.")
@ERROR_TYPE
@changing
def retry(options: CommonOptions, publications: tuple[UUID, ...], everything: bool, error_type: str | None) -> None:
    """Send failed publications again; parts that are in the channel are not repeated. Records manual_requeue.

    Each in its own transaction: one that is refused keeps no other from being retried.
    """
    if bool(publications) == (everything or error_type is not None):
        raise click.UsageError("give either publications, or --all or --error-type")
    results = run(_retry(options, publications, error_type))
    report_results(options, results, RESULTS, {"retried"}, "No dead letters.")


async def _letters(
    options: CommonOptions, publication: UUID | None, error_type: str | None, open_only: bool, limit: int
) -> list[Row]:
    async with operator_gateway(options) as gateway:
        return await gateway.list_dead_letters(publication, error_type, open_only, limit)


async def _retry(options: CommonOptions, publications: tuple[UUID, ...], error_type: str | None) -> list[Row]:
    async with operator_gateway(options) as gateway:
        letters = {row["publication_id"]: row for row in await gateway.list_dead_letters(None, error_type, True, MOST)}
        wanted = publications or tuple(reversed(letters))
        return [await _retry_one(gateway, publication, letters.get(publication), options) for publication in wanted]


async def _retry_one(gateway: OperatorGateway, publication: UUID, letter: Row | None, options: CommonOptions) -> Row:
    if letter is None:
        return {"publication_id": publication, "verdict": "no_open_letter", "status": None, "error_type": None}
    async with gateway.transaction(options.dry_run):
        answer: dict[str, Any] = await gateway.retry_publication(publication, letter["version"])
    return {
        "publication_id": publication,
        "verdict": answer.get("why") or answer["verdict"],
        "status": answer["publication"]["status"],
        "error_type": letter["error_type"],
    }


def _show(row: Row) -> None:
    state = "open" if row["is_open"] else f"dealt with, the publication is {row['status']}"
    click.secho(f"{row['at']:%Y-%m-%d %H:%M:%SZ}  {row['error_type']}  {state}", bold=True)
    for name, value in row["letter"].items():
        if value is not None and name not in ("type", "error", "error_type"):
            click.echo(f"  {name:<16} {value}")
    for name, value in (row["letter"]["error"] or {}).items():
        click.echo(f"  {name:<16} {' '.join(str(value).split())}")
    if row["is_open"]:
        click.echo(f"  {'to retry':<16} autopost dlq retry {row['publication_id']} --reason '…'")
