"""The monitor's database calls: one method per SQL function, no other SQL."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert


class Depth(Struct, frozen=True):
    status: str
    deliveries: int
    oldest_due_seconds: float


class CircuitCount(Struct, frozen=True):
    platform: str
    circuit: str
    rate_groups: int


class WorkspaceBacklog(Struct, frozen=True):
    """The queue of one workspace, or of all others together."""

    workspace: str
    due: int
    later: int
    claimed: int
    oldest_due_seconds: float


class ExpiredInChat(Struct, frozen=True):
    """How many actions of bots ran into their timeout in one chat, which is named by its token."""

    chat: str
    expired: int


class OutboxCommand(Struct, frozen=True):
    """A command that nobody has published yet."""

    workspace_id: WorkspaceId
    command_id: UUID
    msg_id: str
    subject: str
    payload: str
    traceparent: str | None


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

    async def count_bot_actions(self) -> dict[str, int]:
        """By status."""
        rows = await self._database.fetch("SELECT status, actions FROM count_bot_actions()")
        return {row["status"]: row["actions"] for row in rows}

    async def expire_bot_actions(self, workspace: WorkspaceId, max_age: timedelta, limit: int) -> list[ExpiredInChat]:
        rows = await self._database.fetch(
            "SELECT chat, expired FROM expire_bot_actions($1, $2, $3)", workspace, max_age, limit
        )
        return [ExpiredInChat(row["chat"], row["expired"]) for row in rows]

    async def unpublished_commands(self, older: timedelta, limit: int) -> list[OutboxCommand]:
        rows = await self._database.fetch("SELECT * FROM unpublished_commands($1, $2)", older, limit)
        return [convert(dict(row), OutboxCommand) for row in rows]

    async def commands_published(self, commands: Sequence[OutboxCommand]) -> None:
        await self._database.fetchval(
            "SELECT commands_published($1, $2)",
            [command.workspace_id for command in commands],
            [command.command_id for command in commands],
        )

    async def count_publications(self) -> dict[str, int]:
        """Those that have not ended, by status."""
        rows = await self._database.fetch("SELECT status, publications FROM count_publications()")
        return {row["status"]: row["publications"] for row in rows}

    async def count_unpublished_commands(self) -> int:
        return int(await self._database.fetchval("SELECT count_unpublished_commands()"))

    async def drop_missed_publications(self, limit: int) -> int:
        return int(await self._database.fetchval("SELECT drop_missed_publications($1)", limit))

    async def ensure_event_partitions(self, ahead: timedelta) -> int:
        return int(await self._database.fetchval("SELECT ensure_event_partitions($1)", ahead))

    async def queue_depth(self) -> list[Depth]:
        rows = await self._database.fetch("SELECT * FROM queue_depth()")
        return [Depth(row["status"], row["deliveries"], row["oldest_due_seconds"]) for row in rows]

    async def circuit_counts(self) -> list[CircuitCount]:
        rows = await self._database.fetch("SELECT * FROM circuit_counts()")
        return [CircuitCount(*row) for row in rows]

    async def queue_by_workspace(self, limit: int) -> list[WorkspaceBacklog]:
        rows = await self._database.fetch("SELECT * FROM queue_by_workspace($1)", limit)
        return [WorkspaceBacklog(*row) for row in rows]

    async def take_leader_lease(self, name: str, holder: UUID, lease: timedelta, every: timedelta) -> bool:
        return bool(
            await self._database.fetchval("SELECT take_leader_lease($1, $2, $3, $4)", name, holder, lease, every)
        )

    async def end_leader_lease(self, name: str, holder: UUID) -> None:
        await self._database.execute("SELECT end_leader_lease($1, $2)", name, holder)

    async def set_aside(self, workspace: UUID, work: str, failures: int, wait: timedelta, error: str) -> None:
        await self._database.execute("SELECT set_aside($1, $2, $3, $4, $5)", workspace, work, failures, wait, error)

    async def ping(self) -> None:
        """Passes when the database answers and can write."""
        await self._database.ping("SELECT check_writes()")
