"""The bot's calls into the database: one method per function, no other SQL."""

from datetime import datetime

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres import Database
from msgspec import Struct


class Backlog(Struct, frozen=True):
    workspace_id: WorkspaceId
    unanswered: int
    oldest: datetime


class Gateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def bot_backlog(self) -> list[Backlog]:
        rows = await self._database.fetch("SELECT * FROM bot_backlog()")
        return [Backlog(WorkspaceId(row["workspace_id"]), row["unanswered"], row["oldest"]) for row in rows]

    async def ping(self) -> None:
        await self._database.ping()
