"""The database calls of reconciliation and recovery: one method per SQL function, no other SQL."""

from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert


class ReconcileStep(Struct, frozen=True, kw_only=True):
    """The number of checked events and of missing references, and whether the end of the log was reached."""

    events: int
    missing: int
    over: bool


class Corrected(Struct, frozen=True, kw_only=True):
    channel_id: str
    what: str
    was: str | None
    is_now: str | None


class ReconcileGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def reconcile_events(self, limit: int) -> ReconcileStep:
        return convert(await self._database.fetchval("SELECT reconcile_events($1)", limit), ReconcileStep)

    async def orphan_events(self) -> dict[str, int]:
        """The number of events with a missing reference, by kind."""
        found = dict.fromkeys(("delivery", "message", "channel"), 0)
        for row in await self._database.fetch("SELECT what, events FROM orphan_events()"):
            found[row["what"]] += row["events"]
        return found

    async def active_workspaces(self) -> list[WorkspaceId]:
        rows = await self._database.fetch("SELECT active_workspaces() AS workspace_id")
        return [WorkspaceId(row["workspace_id"]) for row in rows]

    async def recount(self, workspace: WorkspaceId) -> list[Corrected]:
        rows = await self._database.fetch("SELECT * FROM recount($1)", workspace)
        return [Corrected(**{**row, "channel_id": str(row["channel_id"])}) for row in rows]

    async def partitions_ahead(self) -> timedelta:
        ahead: timedelta = await self._database.fetchval("SELECT partitions_ahead()")
        return ahead

    async def recover_staged_posts(self, older: timedelta, max_attempts: int, limit: int) -> int:
        query = "SELECT recover_staged_posts($1, $2, $3)"
        return int(await self._database.fetchval(query, older, max_attempts, limit))

    async def stuck_staged_posts(self, older: timedelta, deadline: timedelta) -> dict[str, int]:
        """The number of stuck posts, by reason."""
        query = "SELECT why, count(*) FROM stuck_staged_posts($1, $2) GROUP BY why"
        return {row["why"]: row["count"] for row in await self._database.fetch(query, older, deadline)}

    async def stuck_bot_replies(self, older: timedelta) -> int:
        return int(await self._database.fetchval("SELECT count(*) FROM stuck_bot_replies($1)", older))
