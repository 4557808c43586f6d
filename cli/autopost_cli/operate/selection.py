"""Select a workspace and a channel by id or by name."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import click

from autopost_cli.operate.gateway import Connection, OperatorGateway, Row, connected, list_workspaces
from autopost_cli.operate.operate import CommonOptions
from autopost_cli.operate.wakeup import wake_dispatchers


@asynccontextmanager
async def operator_gateway(options: CommonOptions) -> AsyncIterator[OperatorGateway]:
    """On exit wakes the dispatchers, since the change may allow sends. An unneeded wakeup is harmless."""
    async with connected(options.database_url) as connection:
        workspace = await choose_workspace(connection, options.workspace)
        yield OperatorGateway(connection, workspace, options.operator, options.reason)
    if options.is_signed and not options.dry_run:
        await wake_dispatchers(workspace)


async def choose_workspace(connection: Connection, selector: str | None) -> UUID:
    """By id, name or slug of the name; without a selector the only workspace."""
    found = await list_workspaces(connection)
    names = ", ".join(row["name"] for row in found) or "none"
    if selector is None:
        if len(found) == 1:
            return _id(found[0], "workspace_id")
        if not found:
            raise click.UsageError("--workspace: the database has no workspace; `autopost seed` inserts two for a demo")
        raise click.UsageError(f"--workspace is required: there are several workspaces: {names}")
    return _only(
        [row for row in found if selector in (str(row["workspace_id"]), row["name"])]
        or [row for row in found if _slug(selector) == _slug(row["name"])],
        "workspace_id",
        f"--workspace: workspace {selector!r} not found; available: {names}",
        f"--workspace: several workspaces are named {selector!r}, use the id",
    )


async def choose_channel(gateway: OperatorGateway, selector: str, platform: str | None = None) -> UUID:
    """By id, title, or the id on its platform."""
    found = [row for row in await gateway.list_channels() if platform in (None, row["platform"])]
    return _only(
        [row for row in found if selector in (str(row["channel_id"]), row["title"], row["target_id"])]
        or [row for row in found if _slug(selector) == _slug(row["title"] or "")],
        "channel_id",
        f"channel {selector!r} not found; `autopost channel list` shows all channels",
        f"several channels are named {selector!r}, add --platform or use the id",
    )


def _only(rows: list[Row], key: str, none: str, many: str) -> UUID:
    if not rows:
        raise click.UsageError(none)
    if len(rows) > 1:
        raise click.UsageError(f"{many}: {', '.join(str(row[key]) for row in rows)}")
    return _id(rows[0], key)


def _id(row: Row, key: str) -> UUID:
    found: UUID = row[key]
    return found


def _slug(text: str) -> str:
    return re.sub(r"[\W_]+", "-", text.casefold()).strip("-")
