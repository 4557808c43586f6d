"""`autopost auth rotate`: switch a channel to another credential once no send with the old one is in progress."""

import asyncio
import sys
from datetime import timedelta

import click

from autopost_cli.operate.gateway import ChannelSelection, Row
from autopost_cli.operate.operate import CommonOptions, changing, print_json, run
from autopost_cli.operate.selection import choose_channel, operator_gateway
from autopost_cli.operate.times import Duration

POLL_INTERVAL = 0.5


@click.command()
@click.argument("channel")
@click.option("--platform", help="The platform of the channel, if two channels have the same title.")
@click.option("--auth-ref", required=True, help="The new credential; `autopost auth list` shows the names.")
@click.option("--rate-group", help="The new rate group: another token has its own rate limit.")
@click.option("--pause", type=Duration(), default="2m", show_default=True, help="How long to pause the channel.")
@click.option(
    "--wait", type=Duration(), default="30s", show_default=True, help="How long to wait for sends in progress."
)
@click.option("--force", is_flag=True, help="Change it even if a send with the old credential is in progress.")
@changing
def rotate(
    options: CommonOptions,
    channel: str,
    platform: str | None,
    auth_ref: str,
    rate_group: str | None,
    pause: timedelta,
    wait: timedelta,
    force: bool,
) -> None:
    """Switch a channel to another credential. Records channel_paused and auth_rotated.

    The channel is paused first, so that sends in progress can finish; the pause ends by itself.
    CHANNEL is an id or a title.
    """

    async def work() -> Row:
        async with operator_gateway(options) as gateway:
            chosen = await choose_channel(gateway, channel, platform)
            if options.dry_run:
                async with gateway.transaction(dry_run=True):
                    await gateway.pause_channels(ChannelSelection(channel=chosen), pause)
                    return await gateway.rotate_auth(chosen, auth_ref, rate_group, force)
            await gateway.pause_channels(ChannelSelection(channel=chosen), pause)
            for _ in range(round(wait.total_seconds() / POLL_INTERVAL)):
                answer = await gateway.rotate_auth(chosen, auth_ref, rate_group, force)
                if answer["verdict"] != "sending":
                    return answer
                await asyncio.sleep(POLL_INTERVAL)
            return answer

    _report(options, run(work()), auth_ref)


def _report(options: CommonOptions, answer: Row, auth_ref: str) -> None:
    rotated = answer["verdict"] == "rotated"
    if options.as_json:
        print_json({"dry_run": options.dry_run, **answer})
    elif rotated:
        click.echo(f"{answer['old_auth_ref']} -> {auth_ref}, rate group {answer['rate_group']}")
        if not answer["bound"]:
            click.echo(f"No secret is bound to {auth_ref} yet; bind one with `autopost auth bind`.", err=True)
        if options.dry_run:
            click.echo("Dry run: nothing was changed.")
    elif answer["verdict"] == "sending":
        click.echo(
            f"{answer['sending']} sends with the old credential are in progress; try again later, or use --force",
            err=True,
        )
    else:
        click.echo("Channel not found; `autopost channel list` shows all channels.", err=True)
    sys.exit(0 if rotated else 1)
