"""Run a function for each workspace; a workspace that fails is set aside and does not block the others."""

from collections.abc import Awaitable, Callable, Iterable

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.set_aside import SetAside
from autopost_runtime.postgres.pool import is_away


async def for_each_workspace(
    workspaces: Iterable[WorkspaceId], aside: SetAside, do: Callable[[WorkspaceId], Awaitable[object]]
) -> None:
    """Raises only when the database is unavailable, which affects all workspaces."""
    for workspace in workspaces:
        if aside.left(workspace):
            continue
        try:
            await do(workspace)
            await aside.worked(workspace)
        except Exception as exc:
            if is_away(exc):
                raise
            await aside.failed(workspace, exc)
