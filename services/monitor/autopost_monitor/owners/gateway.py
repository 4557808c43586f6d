"""The database calls of notices to owners: one method per SQL function, no other SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from autopost_contracts.ids import PublicationId, WorkspaceId
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

Outcome = Literal["delivered", "refused", "unreachable"]


class OwnedChannel(Struct, frozen=True, kw_only=True):
    channel_id: UUID
    platform: str
    title: str


class OwnerFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a notice says, as of when it was written. Nothing of the post is in it."""

    status: str
    code: str
    at: datetime
    channel: OwnedChannel
    scheduled_at: datetime | None = None
    timezone: str | None = None
    error: dict[str, Any] | None = None


class OwnerNotice(Struct, frozen=True, kw_only=True):
    workspace_id: WorkspaceId
    publication_id: PublicationId
    version: int
    code: str
    owner: str
    target: str
    attempts: int
    notice: OwnerFacts

    @property
    def id(self) -> str:
        """The same for all attempts, so that a receiver can detect a repeat."""
        return f"{self.publication_id}-{self.version}-{self.code}"


class OwnerGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def next_owner_notices(self, targets: Sequence[str], limit: int) -> list[OwnerNotice]:
        rows = await self._database.fetch("SELECT * FROM next_owner_notices($1, $2)", list(targets), limit)
        return [convert(dict(row), OwnerNotice) for row in rows]

    async def record_owner_notice(
        self, notice: OwnerNotice, outcome: Outcome, error: str | None, wait: timedelta | None, base: timedelta
    ) -> None:
        await self._database.execute(
            "SELECT record_owner_notice($1, $2, $3, $4, $5, $6, $7, $8)",
            *(notice.workspace_id, notice.publication_id, notice.version, notice.code),
            *(outcome, error, wait, base),
        )

    async def give_up_owner_notices(self, after: timedelta) -> list[tuple[str, str, int]]:
        """Target, last error, and how many were given up."""
        rows = await self._database.fetch("SELECT * FROM give_up_owner_notices($1)", after)
        return [(row["target"], row["error"], row["notices"]) for row in rows]
