"""`autopost channel list | pause | resume | disable | enable`: what may be sent where, changed by hand."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import click

from autopost_cli.operate import Order, changing, print_json, print_table, reading, run, tell
from autopost_cli.operate_gateway import OperatorGateway, Row, Target
from autopost_cli.operate_times import Duration
from autopost_cli.workspace import at_work, choose_channel

STATES = ("channel_id", "platform", "title", "rate_group", "auth_ref", "state", "until", "reason", "waiting", "held")
VERDICTS = ("channel_id", "platform", "title", "verdict", "paused_until", "dropped")
CHANNEL = click.argument("channel", required=False)
GROUP = click.option("--rate-group", help="Every channel of this rate group instead of one channel.")
PLATFORM = click.option("--platform", help="Only on this platform: telegram or max.")

Operation = Callable[[OperatorGateway, Target], Awaitable[list[Row]]]


@click.group()
def channel() -> None:
    """Look at channels, pause them, switch them off and on."""


@channel.command("list")
@GROUP
@PLATFORM
@reading
def list_(order: Order, rate_group: str | None, platform: str | None) -> None:
    """Show each channel with its state: open, full, cooling, window_closed, paused or disabled, and until when."""

    async def look() -> list[Row]:
        async with at_work(order) as gateway:
            known = await gateway.list_channels()
            [standing] = (await gateway.snapshot())["workspaces"]
            states = {row["channel_id"]: row for row in standing["channels"]}
            return [{**states.get(str(row["channel_id"]), {}), **row} for row in known]

    wanted = {"rate_group": rate_group, "platform": platform}
    rows = [row for row in run(look()) if all(value in (None, row[name]) for name, value in wanted.items())]
    if order.as_json:
        print_json({"channels": rows})
    else:
        print_table(rows, STATES)


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@click.option("--for", "length", type=Duration(), default="1h", show_default=True, help="For how long: 90s, 15m, 2h.")
@click.option("--until-resumed", is_flag=True, help="Until somebody resumes it.")
@changing
def pause(
    order: Order,
    channel: str | None,
    rate_group: str | None,
    platform: str | None,
    length: timedelta,
    until_resumed: bool,
) -> None:
    """Send nothing there for a while; what is queued is kept. A longer pause that is there already stands.

    Leaves channel_paused. CHANNEL is an id or a title.
    """
    pausing: timedelta | None = None if until_resumed else length
    _operate(order, channel, rate_group, platform, lambda gateway, on: gateway.pause_channels(on, pausing), "paused")


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@changing
def resume(order: Order, channel: str | None, rate_group: str | None, platform: str | None) -> None:
    """End a pause, and apply the channel's catch-up policy to what has piled up.

    Leaves channel_enabled, and catch_up_dropped for each post left out. The error streak stays; `enable` ends that too.
    """
    _operate(order, channel, rate_group, platform, OperatorGateway.resume_channels, "resumed")


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@changing
def disable(order: Order, channel: str | None, rate_group: str | None, platform: str | None) -> None:
    """Switch a channel off: nothing is sent there and nothing new is routed there. Leaves channel_disabled."""
    _operate(order, channel, rate_group, platform, OperatorGateway.disable_channels, "disabled")


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@changing
def enable(order: Order, channel: str | None, rate_group: str | None, platform: str | None) -> None:
    """Switch a channel on again: the pause and the error streak end as well.

    Leaves channel_enabled, and catch_up_dropped for each post that the catch-up policy leaves out.
    """
    _operate(order, channel, rate_group, platform, OperatorGateway.enable_channels, "enabled")


def _operate(
    order: Order, channel: str | None, rate_group: str | None, platform: str | None, operation: Operation, done: str
) -> None:
    if (channel is None) == (rate_group is None):
        raise click.UsageError("name one CHANNEL, by id or title, or a --rate-group")

    async def operate() -> list[Row]:
        async with at_work(order) as gateway:
            if channel is None:
                target = Target(rate_group=rate_group, platform=platform)
            else:
                target = Target(channel=await choose_channel(gateway, channel, platform))
            known = {row["channel_id"]: row for row in await gateway.list_channels()}
            async with gateway.rehearsed(order.dry_run):
                verdicts = await operation(gateway, target)
            return [_named(row, known) for row in verdicts]

    tell(order, run(operate()), VERDICTS, {done}, f"no channel has the rate group {rate_group!r}")


def _named(verdict: Row, known: dict[object, Row]) -> Row:
    about = known.get(verdict["channel_id"], {})
    return {**verdict, "platform": about.get("platform"), "title": about.get("title")}
