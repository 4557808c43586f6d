"""The monitor's calls into the database: one method per function, no other SQL."""

from datetime import timedelta
from uuid import UUID

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres import Database
from msgspec import Struct


class Depth(Struct, frozen=True):
    status: str
    deliveries: int
    oldest_due_seconds: float


class Gateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def active_workspaces(self) -> list[WorkspaceId]:
        rows = await self._database.fetch("SELECT active_workspaces() AS workspace_id")
        return [WorkspaceId(row["workspace_id"]) for row in rows]

    async def recover_sending_leases(self, workspace: WorkspaceId) -> int:
        return int(await self._database.fetchval("SELECT recover_sending_leases($1)", workspace))

    async def recover_claimed_leases(self, workspace: WorkspaceId, lease: timedelta) -> int:
        return int(await self._database.fetchval("SELECT recover_claimed_leases($1, NULL, $2)", workspace, lease))

    async def ensure_event_partitions(self, ahead: timedelta) -> int:
        return int(await self._database.fetchval("SELECT ensure_event_partitions($1)", ahead))

    async def queue_depth(self) -> list[Depth]:
        rows = await self._database.fetch("SELECT * FROM queue_depth()")
        return [Depth(row["status"], row["deliveries"], row["oldest_due_seconds"]) for row in rows]

    async def take_round(self, name: str, holder: UUID, lease: timedelta, every: timedelta) -> bool:
        return bool(await self._database.fetchval("SELECT take_round($1, $2, $3, $4)", name, holder, lease, every))

    async def end_round(self, name: str, holder: UUID) -> None:
        await self._database.execute("SELECT end_round($1, $2)", name, holder)

    async def ping(self) -> None:
        await self._database.ping()
