"""`autopost channel list | check | pause | resume | disable | enable`."""

import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

import click
from autopost_adapters.planning.settings import settings_problems

from autopost_cli.operate.gateway import ChannelSelection, OperatorGateway, Row
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, reading, report_results, run
from autopost_cli.operate.selection import choose_channel, operator_gateway
from autopost_cli.operate.times import Duration

STATES = ("channel_id", "platform", "title", "rate_group", "auth_ref", "state", "until", "reason", "waiting", "held")
PROBLEMS = ("channel_id", "platform", "title", "field", "problem")
VERDICTS = ("channel_id", "platform", "title", "verdict", "paused_until", "dropped")
CHANNEL = click.argument("channel", required=False)
GROUP = click.option("--rate-group", help="Apply to every channel of this rate group.")
PLATFORM = click.option("--platform", help="Only on this platform: telegram or max.")

Operation = Callable[[OperatorGateway, ChannelSelection], Awaitable[list[Row]]]


@click.group()
def channel() -> None:
    """List and check channels; pause, resume, disable or enable them."""


@channel.command("list")
@GROUP
@PLATFORM
@reading
def list_(options: CommonOptions, rate_group: str | None, platform: str | None) -> None:
    """List channels with their state and when it ends.

    States: open, full, cooling, outage, window_closed, paused, disabled.
    """

    async def look() -> list[Row]:
        async with operator_gateway(options) as gateway:
            known = await gateway.list_channels()
            [standing] = (await gateway.snapshot())["workspaces"]
            states = {row["channel_id"]: row for row in standing["channels"]}
            return [{**states.get(str(row["channel_id"]), {}), **row} for row in known]

    wanted = {"rate_group": rate_group, "platform": platform}
    rows = [row for row in run(look()) if all(value in (None, row[name]) for name, value in wanted.items())]
    if options.as_json:
        print_json({"channels": rows})
    else:
        print_table(rows, STATES)


@channel.command()
@reading
def check(options: CommonOptions) -> None:
    """Report unknown or invalid channel settings, and suggest the nearest known name.

    Changes nothing. Exit code 1 if there are any. Posts ignore an unknown setting.
    """

    async def look() -> list[Row]:
        async with operator_gateway(options) as gateway:
            return await gateway.read_channel_settings()

    channels = run(look())
    found = [_problem(row, one.field, one.message) for row in channels for one in settings_problems(row["settings"])]
    if options.as_json:
        print_json({"channels": len(channels), "problems": found})
    elif found:
        print_table(found, PROBLEMS)
    else:
        click.echo(f"No problems found in the settings of {len(channels)} channels.")
    sys.exit(1 if found else 0)


def _problem(channel: Row, field: str, words: str) -> Row:
    return {**{name: channel[name] for name in PROBLEMS[:3]}, "field": field, "problem": words}


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@click.option(
    "--for", "length", type=Duration(), default="1h", show_default=True, help="Length of the pause: 90s, 15m, 2h."
)
@click.option("--until-resumed", is_flag=True, help="Pause until `autopost channel resume`.")
@changing
def pause(
    options: CommonOptions,
    channel: str | None,
    rate_group: str | None,
    platform: str | None,
    length: timedelta,
    until_resumed: bool,
) -> None:
    """Pause a channel for some time; queued deliveries are kept. A longer pause that exists already is kept too.

    Records channel_paused. CHANNEL is an id or a title.
    """
    pausing: timedelta | None = None if until_resumed else length
    _operate(options, channel, rate_group, platform, lambda gateway, on: gateway.pause_channels(on, pausing), "paused")


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@changing
def resume(options: CommonOptions, channel: str | None, rate_group: str | None, platform: str | None) -> None:
    """End a pause and apply the channel's catch-up policy to the deliveries that waited.

    Records channel_enabled, and catch_up_dropped for each delivery that the policy drops. The error streak stays;
    `autopost channel enable` resets it.
    """
    _operate(options, channel, rate_group, platform, OperatorGateway.resume_channels, "resumed")


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@changing
def disable(options: CommonOptions, channel: str | None, rate_group: str | None, platform: str | None) -> None:
    """Disable a channel: nothing is sent to it and no new posts are routed to it. Records channel_disabled."""
    _operate(options, channel, rate_group, platform, OperatorGateway.disable_channels, "disabled")


@channel.command()
@CHANNEL
@GROUP
@PLATFORM
@changing
def enable(options: CommonOptions, channel: str | None, rate_group: str | None, platform: str | None) -> None:
    """Enable a channel; also ends its pause and resets its error streak.

    Records channel_enabled, and catch_up_dropped for each delivery that the catch-up policy drops.
    """
    _operate(options, channel, rate_group, platform, OperatorGateway.enable_channels, "enabled")


def _operate(
    options: CommonOptions,
    channel: str | None,
    rate_group: str | None,
    platform: str | None,
    operation: Operation,
    done: str,
) -> None:
    if (channel is None) == (rate_group is None):
        raise click.UsageError("give either one CHANNEL (id or title) or --rate-group")

    async def operate() -> list[Row]:
        async with operator_gateway(options) as gateway:
            if channel is None:
                target = ChannelSelection(rate_group=rate_group, platform=platform)
            else:
                target = ChannelSelection(channel=await choose_channel(gateway, channel, platform))
            known = {row["channel_id"]: row for row in await gateway.list_channels()}
            async with gateway.transaction(options.dry_run):
                verdicts = await operation(gateway, target)
            return [_named(row, known) for row in verdicts]

    report_results(
        options,
        run(operate()),
        VERDICTS,
        {done},
        f"No channel has the rate group {rate_group!r}; `autopost channel list` shows the rate groups.",
    )


def _named(verdict: Row, known: dict[object, Row]) -> Row:
    about = known.get(verdict["channel_id"], {})
    return {**verdict, "platform": about.get("platform"), "title": about.get("title")}
