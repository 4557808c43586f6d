"""`autopost queue snapshot | errors | requeue | skip | release | resolve`."""

from datetime import timedelta
from uuid import UUID

import click

from autopost_cli.operate.gateway import Row, connected
from autopost_cli.operate.gateway import snapshot as read_snapshot
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, reading, report_results, run
from autopost_cli.operate.selection import choose_workspace, operator_gateway
from autopost_cli.operate.times import Duration
from autopost_cli.queue.requeue import requeue

DELIVERIES = click.argument("deliveries", metavar="DELIVERY...", nargs=-1, required=True, type=click.UUID)
CHANNELS = ("channel_id", "platform", "title", "state", "until", "reason", "waiting", "held", "sending")
ERROR_COLUMNS = ("ts", "action", "code", "channel", "delivery_id", "attempt", "message")
CORRECTION_COLUMNS = ("channel_id", "what", "was", "is_now")


@click.group()
def queue() -> None:
    """Show the queue and recent errors; requeue, skip, release or resolve deliveries."""


queue.add_command(requeue)


@queue.command()
@reading
def snapshot(options: CommonOptions) -> None:
    """Show deliveries by status, the oldest due delivery, recent errors, and channels that are not open.

    Shows all workspaces unless --workspace is given.
    """

    async def look() -> Row:
        async with connected(options.database_url) as connection:
            workspace = await choose_workspace(connection, options.workspace) if options.workspace else None
            return await read_snapshot(connection, workspace)

    found = run(look())
    if options.as_json:
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
@click.option(
    "--window", type=Duration(), default="30m", show_default=True, help="How far to look back: 90s, 15m, 2h, 3d."
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=200, show_default=True, help="Maximum number of errors."
)
@reading
def errors(options: CommonOptions, window: timedelta, limit: int) -> None:
    """List recent errors, newest first."""

    async def look() -> list[Row]:
        async with operator_gateway(options) as gateway:
            return await gateway.recent_errors(window, limit)

    found = run(look())
    if options.as_json:
        print_json({"errors": found})
    elif found:
        print_table([_flat(row) for row in found], ERROR_COLUMNS)
    else:
        click.echo(f"No errors in the last {window}.")


def _flat(row: Row) -> Row:
    error = row["error"] or {}
    return {**row, "code": error.get("code"), "message": error.get("message"), "channel": row["channel_title"]}


@queue.command()
@DELIVERIES
@changing
def skip(options: CommonOptions, deliveries: tuple[UUID, ...]) -> None:
    """Mark dead deliveries as reviewed: they stay dead and no longer raise the `dead` alert. Records manual_skip."""

    async def work() -> list[Row]:
        async with operator_gateway(options) as gateway, gateway.transaction(options.dry_run):
            return await gateway.skip(deliveries)

    report_results(options, run(work()), ("delivery_id", "verdict", "status"), {"skipped"}, "")


@queue.command()
@click.option(
    "--force", is_flag=True, help="Also release deliveries whose lease is valid. Use only if no dispatcher runs."
)
@changing
def release(options: CommonOptions, force: bool) -> None:
    """Emergency: take deliveries back from workers that will not finish them. They are due again in 15 seconds.

    Records manual_requeue, and held for deliveries that an operator must decide (`autopost queue resolve`). Also
    recounts the counters of channels and shows those that were wrong.
    """

    async def work() -> tuple[list[Row], list[Row]]:
        async with operator_gateway(options) as gateway, gateway.transaction(options.dry_run):
            return await gateway.release_stale(force), await gateway.recount()

    released, corrections = run(work())
    if corrections and not options.as_json:
        print_table(corrections, CORRECTION_COLUMNS)
    columns = ("delivery_id", "channel_id", "was", "attempt", "verdict")
    report_results(options, released, columns, {"released", "held"}, "No expired leases found.", recounted=corrections)


@queue.command()
@click.argument("delivery", type=click.UUID)
@click.argument("decision", type=click.Choice(["sent", "resend"]))
@click.option("--provider-message-id", help="The id of the message that you found in the channel.")
@changing
def resolve(options: CommonOptions, delivery: UUID, decision: str, provider_message_id: str | None) -> None:
    """Resolve a held delivery: after an unanswered call, say whether the message is in the channel.

    `sent`: it is there. `resend`: it is not, send it again. Records sent, or manual_requeue.
    """
    if decision == "resend" and provider_message_id:
        raise click.UsageError("--provider-message-id can only be used with `sent`")

    async def work() -> Row:
        async with operator_gateway(options) as gateway, gateway.transaction(options.dry_run):
            return await gateway.resolve_ambiguous(delivery, decision, provider_message_id)

    answer = {"delivery_id": delivery, **run(work())}
    report_results(
        options, [answer], ("delivery_id", "verdict", "status", "attempt"), {"sent", "continues", "resent"}, ""
    )
