"""`autopost auth status-token create | list | revoke`: who may look at the status page.

A token is shown once, when it is made; the database keeps its hash and nobody can be shown it again.
"""

import secrets
import sys
from datetime import timedelta
from hashlib import sha256

import click

from autopost_cli.operate import Order, changing, print_json, print_table, reading, run
from autopost_cli.operate_gateway import Row, connected
from autopost_cli.operate_times import Duration, shown
from autopost_cli.status_token_gateway import issue_status_token, list_status_tokens, rehearsed, revoke_status_token
from autopost_cli.workspace import choose_workspace

PREFIX = "aps_"
REFUSALS = {
    "label_taken": "--label: a living token is called so; revoke it, or take another label",
    "not_found": "there is no such workspace, or no living token of this label",
}
COLUMNS = ("label", "workspace", "expires_at", "created_by", "created_at", "reason")


@click.group("status-token")
def status_token() -> None:
    """Say who may look at the status page: at one workspace, or at all of them."""


@status_token.command()
@click.option("--all-workspaces", is_flag=True, help="The operator's: it sees every workspace.")
@click.option("--label", required=True, help="What it is called, here and on the page.")
@click.option("--expires", type=Duration(), default="90d", show_default=True, help="For how long it is good.")
@changing
def create(order: Order, all_workspaces: bool, label: str, expires: timedelta) -> None:
    """Make a token and print it, once. Leaves auth_rotated; the operator's under the workspace of zeros.

    It goes into `Authorization: Bearer …`, or into the form of the page; never into an address.
    """
    if all_workspaces == (order.workspace is not None):
        raise click.UsageError("exactly one of --workspace and --all-workspaces is needed")
    token = PREFIX + secrets.token_urlsafe(32)
    answer = run(_create(order, token, label, expires))
    _tell(order, answer | ({"token": token} if answer["verdict"] == "issued" and not order.dry_run else {}))


@status_token.command("list")
@reading
def list_(order: Order) -> None:
    """Show the tokens that are not revoked; never a token itself. --workspace is not needed."""

    async def work() -> list[Row]:
        async with connected(order.database_url) as connection:
            meant = await choose_workspace(connection, order.workspace) if order.workspace else None
            return [row for row in await list_status_tokens(connection) if meant in (None, row["workspace_id"])]

    found = run(work())
    if order.as_json:
        print_json({"status_tokens": found})
    else:
        print_table([row | {"workspace": row["workspace"] or "(all)"} for row in found], COLUMNS)


@status_token.command()
@click.argument("label")
@changing
def revoke(order: Order, label: str) -> None:
    """Make a token worthless, from the next request on. Leaves auth_rotated. --workspace is not needed."""

    async def work() -> Row:
        async with rehearsed(order) as connection:
            return await revoke_status_token(connection, order, label)

    _tell(order, run(work()))


async def _create(order: Order, token: str, label: str, expires: timedelta) -> Row:
    digest = sha256(token.encode()).hexdigest()
    async with rehearsed(order) as connection:
        workspace = await choose_workspace(connection, order.workspace) if order.workspace else None
        return await issue_status_token(connection, order, digest, workspace, label, expires)


def _tell(order: Order, answer: Row) -> None:
    refusal = REFUSALS.get(answer["verdict"])
    if order.as_json:
        print_json({"dry_run": order.dry_run, **answer})
    elif refusal:
        click.echo(refusal, err=True)
    elif token := answer.get("token"):
        click.echo(token)
        click.echo(f"It is shown only now, and is good until {shown(answer['expires_at'])}.", err=True)
    else:
        click.echo(f"{answer['verdict']}{'. Dry run: nothing was changed.' if order.dry_run else ''}")
    sys.exit(1 if refusal else 0)
