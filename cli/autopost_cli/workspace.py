"""Which workspace, and which channel in it, an operator means: by id, or as people call it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import click

from autopost_cli.operate import Order
from autopost_cli.operate_gateway import Connection, OperatorGateway, Row, connected, list_workspaces
from autopost_cli.wakeup import wake_dispatchers


@asynccontextmanager
async def at_work(order: Order) -> AsyncIterator[OperatorGateway]:
    """Afterwards the dispatchers look: what was changed by hand may have opened a gate. A look too many is harmless."""
    async with connected(order.database_url) as connection:
        workspace = await choose_workspace(connection, order.workspace)
        yield OperatorGateway(connection, workspace, order.operator, order.reason)
    if order.is_signed and not order.dry_run:
        await wake_dispatchers(workspace)


async def choose_workspace(connection: Connection, meant: str | None) -> UUID:
    """By id, name, or the name as one would write it in an address; the only one when nothing is said."""
    found = await list_workspaces(connection)
    names = ", ".join(row["name"] for row in found) or "none"
    if meant is None:
        if len(found) == 1:
            return _id(found[0], "workspace_id")
        raise click.UsageError(f"--workspace: there is more than one, or none; say which: {names}")
    return _only(
        [row for row in found if meant in (str(row["workspace_id"]), row["name"])]
        or [row for row in found if _slug(meant) == _slug(row["name"])],
        "workspace_id",
        f"--workspace: no workspace {meant!r}; there are: {names}",
        f"--workspace: more than one is called {meant!r}",
    )


async def choose_channel(gateway: OperatorGateway, meant: str, platform: str | None = None) -> UUID:
    """By id, title, or the platform's own id of it."""
    found = [row for row in await gateway.list_channels() if platform in (None, row["platform"])]
    return _only(
        [row for row in found if meant in (str(row["channel_id"]), row["title"], row["target_id"])]
        or [row for row in found if _slug(meant) == _slug(row["title"] or "")],
        "channel_id",
        f"no channel {meant!r}; `autopost channel list` shows them",
        f"more than one channel is called {meant!r}, say --platform or the id",
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
