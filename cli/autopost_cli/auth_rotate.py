"""`autopost auth rotate`: a channel gets another credential once nothing is on its way with the old one."""

import asyncio
import sys
from datetime import timedelta

import click

from autopost_cli.operate import Order, changing, print_json, run
from autopost_cli.operate_gateway import Row, Target
from autopost_cli.operate_times import Duration
from autopost_cli.workspace import at_work, choose_channel

LOOK_AGAIN = 0.5


@click.command()
@click.argument("channel")
@click.option("--platform", help="The platform, where two channels have one title.")
@click.option("--auth-ref", required=True, help="The credential from now on, as `autopost auth list` names it.")
@click.option("--rate-group", help="Its rate group from now on: another token has its own limit.")
@click.option("--pause", type=Duration(), default="2m", show_default=True, help="So long nothing new is sent there.")
@click.option("--wait", type=Duration(), default="30s", show_default=True, help="So long for what is on its way.")
@click.option("--force", is_flag=True, help="Even while something is sent with the old one.")
@changing
def rotate(
    order: Order,
    channel: str,
    platform: str | None,
    auth_ref: str,
    rate_group: str | None,
    pause: timedelta,
    wait: timedelta,
    force: bool,
) -> None:
    """Point a channel at another credential. Leaves channel_paused and auth_rotated.

    The channel is paused first, so that what is being sent can end; the pause runs out by itself.
    CHANNEL is an id or a title.
    """

    async def work() -> Row:
        async with at_work(order) as gateway:
            chosen = await choose_channel(gateway, channel, platform)
            if order.dry_run:
                async with gateway.rehearsed(dry_run=True):
                    await gateway.pause_channels(Target(channel=chosen), pause)
                    return await gateway.rotate_auth(chosen, auth_ref, rate_group, force)
            await gateway.pause_channels(Target(channel=chosen), pause)
            for _ in range(round(wait.total_seconds() / LOOK_AGAIN)):
                answer = await gateway.rotate_auth(chosen, auth_ref, rate_group, force)
                if answer["verdict"] != "sending":
                    return answer
                await asyncio.sleep(LOOK_AGAIN)
            return answer

    _tell(order, run(work()), auth_ref)


def _tell(order: Order, answer: Row, auth_ref: str) -> None:
    rotated = answer["verdict"] == "rotated"
    if order.as_json:
        print_json({"dry_run": order.dry_run, **answer})
    elif rotated:
        click.echo(f"{answer['old_auth_ref']} -> {auth_ref}, rate group {answer['rate_group']}")
        if not answer["bound"]:
            click.echo(f"No secret is bound to {auth_ref} yet: `autopost auth bind`.", err=True)
        if order.dry_run:
            click.echo("Dry run: nothing was changed.")
    elif answer["verdict"] == "sending":
        click.echo(f"{answer['sending']} still on their way with the old credential; ask again, or --force", err=True)
    else:
        click.echo("There is no such channel.", err=True)
    sys.exit(0 if rotated else 1)
