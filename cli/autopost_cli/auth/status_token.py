"""`autopost auth status-token create | list | revoke`: access to the status page.

A token is shown once, when it is created; the database stores only its hash.
"""

import secrets
import sys
from datetime import timedelta
from hashlib import sha256

import click

from autopost_cli.auth.status_token_gateway import (
    issue_status_token,
    list_status_tokens,
    revoke_status_token,
    transaction,
)
from autopost_cli.operate.gateway import Row, connected
from autopost_cli.operate.operate import CommonOptions, changing, print_json, print_table, reading, run
from autopost_cli.operate.selection import choose_workspace
from autopost_cli.operate.times import Duration, shown

PREFIX = "aps_"
REFUSALS = {
    "label_taken": "--label: a valid token with this label exists; revoke it or choose another label",
    "not_found": "workspace not found, or no valid token with this label; `autopost auth status-token list` shows them",
}
COLUMNS = ("label", "workspace", "expires_at", "created_by", "created_at", "reason")


@click.group("status-token")
def status_token() -> None:
    """Manage access tokens of the status page, for one workspace or for all."""


@status_token.command()
@click.option("--all-workspaces", is_flag=True, help="A token of the operator: it shows every workspace.")
@click.option("--label", required=True, help="The name of the token, in lists and on the status page.")
@click.option("--expires", type=Duration(), default="90d", show_default=True, help="How long the token is valid.")
@changing
def create(options: CommonOptions, all_workspaces: bool, label: str, expires: timedelta) -> None:
    """Create a token and print it once. Records auth_rotated (with an all-zero workspace id for --all-workspaces).

    Send it as `Authorization: Bearer …`, or type it into the form of the page; never put it into a URL.
    """
    if all_workspaces == (options.workspace is not None):
        raise click.UsageError("give exactly one of --workspace and --all-workspaces")
    token = PREFIX + secrets.token_urlsafe(32)
    answer = run(_create(options, token, label, expires))
    _report(options, answer | ({"token": token} if answer["verdict"] == "issued" and not options.dry_run else {}))


@status_token.command("list")
@reading
def list_(options: CommonOptions) -> None:
    """List the tokens that are not revoked, without their values. --workspace is optional."""

    async def work() -> list[Row]:
        async with connected(options.database_url) as connection:
            selector = await choose_workspace(connection, options.workspace) if options.workspace else None
            return [row for row in await list_status_tokens(connection) if selector in (None, row["workspace_id"])]

    found = run(work())
    if options.as_json:
        print_json({"status_tokens": found})
    else:
        print_table([row | {"workspace": row["workspace"] or "(all)"} for row in found], COLUMNS)


@status_token.command()
@click.argument("label")
@changing
def revoke(options: CommonOptions, label: str) -> None:
    """Revoke a token; the next request with it is refused. Records auth_rotated. --workspace is not needed."""

    async def work() -> Row:
        async with transaction(options) as connection:
            return await revoke_status_token(connection, options, label)

    _report(options, run(work()))


async def _create(options: CommonOptions, token: str, label: str, expires: timedelta) -> Row:
    digest = sha256(token.encode()).hexdigest()
    async with transaction(options) as connection:
        workspace = await choose_workspace(connection, options.workspace) if options.workspace else None
        return await issue_status_token(connection, options, digest, workspace, label, expires)


def _report(options: CommonOptions, answer: Row) -> None:
    refusal = REFUSALS.get(answer["verdict"])
    if options.as_json:
        print_json({"dry_run": options.dry_run, **answer})
    elif refusal:
        click.echo(refusal, err=True)
    elif token := answer.get("token"):
        click.echo(token)
        click.echo(f"Save it now: it is not shown again. Valid until {shown(answer['expires_at'])}.", err=True)
    else:
        click.echo(f"{answer['verdict']}{'. Dry run: nothing was changed.' if options.dry_run else ''}")
    sys.exit(1 if refusal else 0)
