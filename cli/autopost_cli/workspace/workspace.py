"""`autopost workspace list | pause | resume | disable`."""

import click

from autopost_cli.operate.gateway import Row, connected, list_workspaces
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, reading, report_results, run
from autopost_cli.operate.selection import operator_gateway

COLUMNS = ("workspace_id", "verdict", "was", "status")


@click.group()
def workspace() -> None:
    """List workspaces; pause, resume or disable them."""


@workspace.command("list")
@reading
def list_(options: CommonOptions) -> None:
    """List workspaces with their status."""

    async def look() -> list[Row]:
        async with connected(options.database_url) as connection:
            return await list_workspaces(connection)

    rows = [row for row in run(look()) if options.workspace in (None, row["name"], str(row["workspace_id"]))]
    if options.as_json:
        print_json({"workspaces": rows})
    else:
        print_table(rows, ("workspace_id", "name", "status"))


@workspace.command()
@changing
def pause(options: CommonOptions) -> None:
    """Pause a workspace: nothing is sent, senders get 503, queued deliveries are kept. Records config_changed."""
    _turn(options, "paused")


@workspace.command()
@changing
def resume(options: CommonOptions) -> None:
    """Make a workspace active again and wake the dispatchers. Records config_changed."""
    _turn(options, "active")


@workspace.command()
@changing
def disable(options: CommonOptions) -> None:
    """Disable a workspace: nothing is sent, senders get 403, queued deliveries are kept. Records config_changed."""
    _turn(options, "disabled")


def _turn(options: CommonOptions, status: str) -> None:
    async def work() -> Row:
        async with operator_gateway(options) as gateway, gateway.transaction(options.dry_run):
            return {"workspace_id": gateway.workspace, **await gateway.turn_workspace(status)}

    report_results(
        options,
        [run(work())],
        COLUMNS,
        {"turned"},
        "Workspace not found; `autopost workspace list` shows all workspaces.",
    )
