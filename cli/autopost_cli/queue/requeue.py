"""`autopost queue requeue`: requeue dead and failed_permanent deliveries, by id or by filter.

With a filter, the deliveries are counted and confirmed first and then moved page by page. Each page is its own
transaction, so the pages before an interruption stay done.
"""

import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import click
import msgspec

from autopost_cli.operate.gateway import DeadLetterPage, Filter, OperatorGateway, Row
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, report_results, run
from autopost_cli.operate.selection import choose_channel, operator_gateway
from autopost_cli.operate.times import Moment

REQUEUED = "requeued"
COLUMNS = ("delivery_id", "verdict", "twin_id", "status", "attempt", "max_attempts", "opens_at")
INSTANT = timedelta(microseconds=1)


class RequeueTerms(NamedTuple):
    attempts: int
    force: bool
    batch: int


@click.command()
@click.argument("deliveries", metavar="[DELIVERY]...", nargs=-1, type=click.UUID)
@click.option("--status", type=click.Choice(["dead", "failed_permanent"]), help="Filter: the final status.")
@click.option("--code", help="Filter: the code of the last error.")
@click.option("--channel", help="Filter: the channel, by id or title.")
@click.option("--message", type=click.UUID, help="Filter: the message.")
@click.option("--since", type=Moment(), help="Filter: failed at or after this time; 2h means two hours ago.")
@click.option("--until", type=Moment(), help="Filter: failed before this time.")
@click.option("--all", "everything", is_flag=True, help="All dead and failed_permanent deliveries.")
@click.option("--attempts", type=click.IntRange(1, 1000), default=5, show_default=True, help="Number of new attempts.")
@click.option("--force", is_flag=True, help="Also if the same content is queued or was sent recently to the channel.")
@click.option(
    "--batch", type=click.IntRange(1, 5000), default=500, show_default=True, help="Deliveries per transaction."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@changing
def requeue(
    options: CommonOptions,
    deliveries: tuple[UUID, ...],
    status: str | None,
    code: str | None,
    channel: str | None,
    message: UUID | None,
    since: datetime | None,
    until: datetime | None,
    everything: bool,
    attempts: int,
    force: bool,
    batch: int,
    yes: bool,
) -> None:
    """Requeue deliveries that are dead or failed_permanent: by id, or all that match a filter.

    Records manual_requeue; `attempt` continues to count. A filter ignores skipped deliveries, and those dropped by a
    catch-up policy unless --code catch_up_dropped is given.
    """
    wanted = Filter(status=status, code=code, message=message, since=since, until=until)
    filtering = everything or channel is not None or wanted != Filter()
    if bool(deliveries) == filtering:
        raise click.UsageError(
            "give either delivery ids or a filter, not both; --all selects every dead or failed_permanent delivery"
        )
    if filtering and options.as_json and not yes and not options.dry_run:
        raise click.UsageError("--json cannot ask for confirmation: add --yes, or --dry-run to count only")
    if filtering:
        run(_by_filter(options, wanted, channel, RequeueTerms(attempts, force, batch), yes))
    else:
        report_results(options, run(_by_name(options, deliveries, attempts, force)), COLUMNS, {REQUEUED}, "")


async def _by_name(options: CommonOptions, deliveries: tuple[UUID, ...], attempts: int, force: bool) -> list[Row]:
    async with operator_gateway(options) as gateway:
        return await gateway.requeue(deliveries, attempts, force, options.dry_run)


async def _by_filter(
    options: CommonOptions, wanted: Filter, channel: str | None, terms: RequeueTerms, yes: bool
) -> None:
    async with operator_gateway(options) as gateway:
        if channel is not None:
            wanted = msgspec.structs.replace(wanted, channel=await choose_channel(gateway, channel))
        moved: Counter[str] = Counter()
        counted, last_at = await _count(gateway, wanted, terms)
        if last_at and counted[REQUEUED] and not options.dry_run and (yes or _agreed(options, counted)):
            # Deliveries that fail from here on were not counted, so they are not moved.
            wanted = msgspec.structs.replace(wanted, until=last_at + INSTANT)
            moved = await _move(gateway, wanted, terms, counted.total())
    _report(options, counted, moved)


async def _count(gateway: OperatorGateway, wanted: Filter, terms: RequeueTerms) -> tuple[Counter[str], datetime | None]:
    counted: Counter[str] = Counter()
    last_at = None
    async for page in _pages(gateway, wanted, terms.batch):
        last_at = page.last_at
        verdicts = await gateway.requeue(page.deliveries, terms.attempts, terms.force, dry_run=True)
        counted.update(row["verdict"] for row in verdicts)
    return counted, last_at


async def _move(gateway: OperatorGateway, wanted: Filter, terms: RequeueTerms, about: int) -> Counter[str]:
    moved: Counter[str] = Counter()
    with click.progressbar(length=about, label="requeueing", file=sys.stderr) as bar:
        async for page in _pages(gateway, wanted, terms.batch):
            verdicts = await gateway.requeue(page.deliveries, terms.attempts, terms.force, dry_run=False)
            moved.update(row["verdict"] for row in verdicts)
            bar.update(len(page.deliveries))
    return moved


async def _pages(gateway: OperatorGateway, wanted: Filter, size: int) -> AsyncIterator[DeadLetterPage]:
    page = await gateway.match_dead_letters(wanted, None, size)
    while page:
        yield page
        page = await gateway.match_dead_letters(wanted, page, size)


def _agreed(options: CommonOptions, counted: Counter[str]) -> bool:
    _table(counted)
    return click.confirm(f"Requeue {counted[REQUEUED]} deliveries as {options.operator}?", err=True)


def _report(options: CommonOptions, counted: Counter[str], moved: Counter[str]) -> None:
    if options.as_json:
        print_json({"dry_run": options.dry_run, "counted": counted, "verdicts": moved})
    elif moved:
        _table(moved)
    elif options.dry_run and counted:
        _table(counted)
        click.echo("Dry run: nothing was changed.")
    else:
        click.echo("No dead or failed_permanent delivery matches." if not counted else "Nothing was changed.")
    sys.exit(0 if (counted if options.dry_run else moved)[REQUEUED] else 1)


def _table(verdicts: Counter[str]) -> None:
    print_table(
        [{"verdict": verdict, "count": count} for verdict, count in verdicts.most_common()], ("verdict", "count")
    )
