"""The bot's database calls: one method per SQL function, no other SQL."""

from datetime import datetime

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.pool import Database
from msgspec import Struct


class InboxBacklog(Struct, frozen=True):
    workspace_id: WorkspaceId
    unanswered: int
    oldest: datetime


class Gateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def bot_backlog(self) -> list[InboxBacklog]:
        rows = await self._database.fetch("SELECT * FROM bot_backlog()")
        return [InboxBacklog(WorkspaceId(row["workspace_id"]), row["unanswered"], row["oldest"]) for row in rows]

    async def ping(self) -> None:
        """Passes when the database answers and can write."""
        await self._database.ping("SELECT check_writes()")
