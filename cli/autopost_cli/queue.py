"""`autopost queue snapshot | errors | requeue | skip | release | resolve`: the queue, seen and moved by hand."""

from datetime import timedelta
from uuid import UUID

import click

from autopost_cli.operate import Order, changing, print_json, print_table, reading, run, tell
from autopost_cli.operate_gateway import Row, connected
from autopost_cli.operate_gateway import snapshot as read_snapshot
from autopost_cli.operate_times import Duration
from autopost_cli.queue_requeue import requeue
from autopost_cli.workspace import at_work, choose_workspace

DELIVERIES = click.argument("deliveries", metavar="DELIVERY...", nargs=-1, required=True, type=click.UUID)
CHANNELS = ("channel_id", "platform", "title", "state", "until", "reason", "waiting", "held", "sending")
BROKEN = ("ts", "action", "code", "channel", "delivery_id", "attempt", "message")
MENDED = ("channel_id", "what", "was", "is_now")


@click.group()
def queue() -> None:
    """See how the queue stands and what broke; bring back, skip, release and resolve deliveries."""


queue.add_command(requeue)


@queue.command()
@reading
def snapshot(order: Order) -> None:
    """Show deliveries by status, the oldest due, what broke lately, and every channel that is not open.

    Of all workspaces, unless one is named.
    """

    async def look() -> Row:
        async with connected(order.database_url) as connection:
            workspace = await choose_workspace(connection, order.workspace) if order.workspace else None
            return await read_snapshot(connection, workspace)

    found = run(look())
    if order.as_json:
        print_json(found)
        return
    for standing in found["workspaces"]:
        _show(standing)


def _show(standing: Row) -> None:
    click.secho(f"{standing['name']} ({standing['status']})", bold=True)
    counts = standing["counts"] | {"held": standing["held"], "skipped": standing["skipped"]}
    click.echo("  ".join(f"{name} {count}" for name, count in counts.items()))
    if oldest := standing["oldest_due"]:
        click.echo(f"oldest due since {oldest['due_at']} in channel {oldest['channel_id']}")
    if standing["top_errors"]:
        print_table(standing["top_errors"], ("code", "scope", "action", "count", "last_at"))
    if closed := [row for row in standing["channels"] if row["state"] != "open"]:
        print_table(closed, CHANNELS)
    click.echo()


@queue.command()
@click.option("--window", type=Duration(), default="30m", show_default=True, help="How far back: 90s, 15m, 2h, 3d.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=200, show_default=True, help="At most so many.")
@reading
def errors(order: Order, window: timedelta, limit: int) -> None:
    """Show what broke, the newest first."""

    async def look() -> list[Row]:
        async with at_work(order) as gateway:
            return await gateway.recent_errors(window, limit)

    found = run(look())
    if order.as_json:
        print_json({"errors": found})
    elif found:
        print_table([_flat(row) for row in found], BROKEN)
    else:
        click.echo(f"Nothing broke within the last {window}.")


def _flat(row: Row) -> Row:
    error = row["error"] or {}
    return {**row, "code": error.get("code"), "message": error.get("message"), "channel": row["channel_title"]}


@queue.command()
@DELIVERIES
@changing
def skip(order: Order, deliveries: tuple[UUID, ...]) -> None:
    """Leave dead deliveries dead, and out of the `dead` alert. Leaves manual_skip."""

    async def work() -> list[Row]:
        async with at_work(order) as gateway, gateway.rehearsed(order.dry_run):
            return await gateway.skip(deliveries)

    tell(order, run(work()), ("delivery_id", "verdict", "status"), {"skipped"}, "")


@queue.command()
@click.option("--force", is_flag=True, help="Also what a running lease covers: only when every dispatcher is gone.")
@changing
def release(order: Order, force: bool) -> None:
    """Emergency: take back what workers hold and will not finish. It is due again in 15 seconds.

    Leaves manual_requeue, and held where a human must decide (`autopost queue resolve`). Counts places anew, and
    says what was miscounted.
    """

    async def work() -> tuple[list[Row], list[Row]]:
        async with at_work(order) as gateway, gateway.rehearsed(order.dry_run):
            return await gateway.release_stale(force), await gateway.recount()

    released, mended = run(work())
    if mended and not order.as_json:
        print_table(mended, MENDED)
    columns = ("delivery_id", "channel_id", "was", "attempt", "verdict")
    tell(order, released, columns, {"released", "held"}, "Nothing is held beyond its lease.", recounted=mended)


@queue.command()
@click.argument("delivery", type=click.UUID)
@click.argument("decision", type=click.Choice(["sent", "resend"]))
@click.option("--provider-message-id", help="The message that you found in the channel.")
@changing
def resolve(order: Order, delivery: UUID, decision: str, provider_message_id: str | None) -> None:
    """End a hold: you have looked into the channel and know whether the call that nobody answered arrived.

    `sent`: it did. `resend`: it did not, and goes out again. Leaves sent, or manual_requeue.
    """
    if decision == "resend" and provider_message_id:
        raise click.UsageError("--provider-message-id: what is to be sent again has none")

    async def work() -> Row:
        async with at_work(order) as gateway, gateway.rehearsed(order.dry_run):
            return await gateway.resolve_ambiguous(delivery, decision, provider_message_id)

    answer = {"delivery_id": delivery, **run(work())}
    tell(order, [answer], ("delivery_id", "verdict", "status", "attempt"), {"sent", "continues", "resent"}, "")
