"""`autopost queue requeue`: what was given up comes back, named one by one or by a filter.

By a filter nothing moves before it was counted and agreed to, and then page by page: each page is a transaction of its
own, so an interrupted run has done what it says it has done.
"""

import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import click
import msgspec

from autopost_cli.operate import Order, changing, print_json, print_table, run, tell
from autopost_cli.operate_gateway import Filter, OperatorGateway, Page, Row
from autopost_cli.operate_times import Moment
from autopost_cli.workspace import at_work, choose_channel

BACK = "requeued"
COLUMNS = ("delivery_id", "verdict", "twin_id", "status", "attempt", "max_attempts", "opens_at")
INSTANT = timedelta(microseconds=1)


class Terms(NamedTuple):
    attempts: int
    force: bool
    batch: int


@click.command()
@click.argument("deliveries", metavar="[DELIVERY]...", nargs=-1, type=click.UUID)
@click.option("--status", type=click.Choice(["dead", "failed_permanent"]), help="Filter: how it was given up.")
@click.option("--code", help="Filter: the code of its last error.")
@click.option("--channel", help="Filter: the channel, by id or title.")
@click.option("--message", type=click.UUID, help="Filter: the message.")
@click.option("--since", type=Moment(), help="Filter: given up at or after this time; 2h is two hours ago.")
@click.option("--until", type=Moment(), help="Filter: given up before this time.")
@click.option("--all", "everything", is_flag=True, help="Everything that was given up.")
@click.option("--attempts", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many tries it gets.")
@click.option("--force", is_flag=True, help="Also beside a twin that is on its way or was sent lately.")
@click.option(
    "--batch", type=click.IntRange(1, 5000), default=500, show_default=True, help="So many move in one transaction."
)
@click.option("--yes", is_flag=True, help="Do not ask before moving what a filter has found.")
@changing
def requeue(
    order: Order,
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
    """Bring deliveries back that are dead or failed_permanent: named, or all that a filter finds.

    Leaves manual_requeue; `attempt` goes on counting. A filter leaves out what was skipped, and what a catch-up has
    dropped unless --code catch_up_dropped.
    """
    wanted = Filter(status=status, code=code, message=message, since=since, until=until)
    filtering = everything or channel is not None or wanted != Filter()
    if bool(deliveries) == filtering:
        raise click.UsageError("name deliveries, or give a filter (--all for everything that was given up), not both")
    if filtering and order.as_json and not yes and not order.dry_run:
        raise click.UsageError("--json asks nothing: give --yes, or --dry-run for the count alone")
    if filtering:
        run(_by_filter(order, wanted, channel, Terms(attempts, force, batch), yes))
    else:
        tell(order, run(_by_name(order, deliveries, attempts, force)), COLUMNS, {BACK}, "")


async def _by_name(order: Order, deliveries: tuple[UUID, ...], attempts: int, force: bool) -> list[Row]:
    async with at_work(order) as gateway:
        return await gateway.requeue(deliveries, attempts, force, order.dry_run)


async def _by_filter(order: Order, wanted: Filter, channel: str | None, terms: Terms, yes: bool) -> None:
    async with at_work(order) as gateway:
        if channel is not None:
            wanted = msgspec.structs.replace(wanted, channel=await choose_channel(gateway, channel))
        moved: Counter[str] = Counter()
        counted, last_at = await _count(gateway, wanted, terms)
        if last_at and counted[BACK] and not order.dry_run and (yes or _agreed(order, counted)):
            # What is given up from here on was not counted, so it is not moved.
            wanted = msgspec.structs.replace(wanted, until=last_at + INSTANT)
            moved = await _move(gateway, wanted, terms, counted.total())
    _report(order, counted, moved)


async def _count(gateway: OperatorGateway, wanted: Filter, terms: Terms) -> tuple[Counter[str], datetime | None]:
    counted: Counter[str] = Counter()
    last_at = None
    async for page in _pages(gateway, wanted, terms.batch):
        last_at = page.last_at
        verdicts = await gateway.requeue(page.deliveries, terms.attempts, terms.force, dry_run=True)
        counted.update(row["verdict"] for row in verdicts)
    return counted, last_at


async def _move(gateway: OperatorGateway, wanted: Filter, terms: Terms, about: int) -> Counter[str]:
    moved: Counter[str] = Counter()
    with click.progressbar(length=about, label="requeueing", file=sys.stderr) as bar:
        async for page in _pages(gateway, wanted, terms.batch):
            verdicts = await gateway.requeue(page.deliveries, terms.attempts, terms.force, dry_run=False)
            moved.update(row["verdict"] for row in verdicts)
            bar.update(len(page.deliveries))
    return moved


async def _pages(gateway: OperatorGateway, wanted: Filter, size: int) -> AsyncIterator[Page]:
    page = await gateway.match_given_up(wanted, None, size)
    while page:
        yield page
        page = await gateway.match_given_up(wanted, page, size)


def _agreed(order: Order, counted: Counter[str]) -> bool:
    _table(counted)
    return click.confirm(f"Bring {counted[BACK]} back, as {order.operator}?", err=True)


def _report(order: Order, counted: Counter[str], moved: Counter[str]) -> None:
    if order.as_json:
        print_json({"dry_run": order.dry_run, "counted": counted, "verdicts": moved})
    elif moved:
        _table(moved)
    elif order.dry_run and counted:
        _table(counted)
        click.echo("Dry run: nothing was changed.")
    else:
        click.echo("Nothing was given up that matches." if not counted else "Nothing was changed.")
    sys.exit(0 if (counted if order.dry_run else moved)[BACK] else 1)


def _table(verdicts: Counter[str]) -> None:
    print_table(
        [{"verdict": verdict, "count": count} for verdict, count in verdicts.most_common()], ("verdict", "count")
    )
