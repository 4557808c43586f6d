"""The database calls of the status page: one method per SQL function, no other SQL."""

from datetime import datetime
from typing import Any
from uuid import UUID

from autopost_runtime.postgres.pool import Database
from msgspec import Struct


class Viewer(Struct, frozen=True, kw_only=True):
    """The holder of a status token; ``workspace`` is ``None`` for an operator, who sees all workspaces."""

    label: str
    workspace: UUID | None
    expires_at: datetime


class StatusGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def resolve_status_token(self, token_hash: str) -> Viewer | None:
        row = await self._database.fetchrow("SELECT * FROM resolve_status_token($1)", token_hash)
        if row is None:
            return None
        return Viewer(label=row["label"], workspace=row["workspace_id"], expires_at=row["expires_at"])

    async def status_report(self, workspace: UUID | None) -> dict[str, Any]:
        report: dict[str, Any] = await self._database.fetchval("SELECT status_report($1)", workspace)
        return report
