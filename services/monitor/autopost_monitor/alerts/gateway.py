"""The database calls of alerts: one method per SQL function, no other SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert


class AlertChange(Struct, frozen=True, kw_only=True):
    """An alert that was opened, is still open, or was resolved."""

    alert_id: UUID
    workspace_id: UUID
    condition: str
    kind: str
    found: int


class Cause(Struct, frozen=True, kw_only=True):
    name: str
    code: str | None = None
    count: int | None = None
    id: str | None = None
    """An id to look up with ``autopost why``, such as a delivery id."""


class Facts(Struct, frozen=True, kw_only=True):
    """The content of a notice, as of the time when it was created."""

    kind: str
    at: datetime
    condition: str = "snapshot"
    workspace_id: UUID | None = None
    """``None``: the whole installation."""
    workspace: str | None = None
    count: int = 0
    threshold: float = 0
    since: datetime | None = None
    opened_at: datetime | None = None
    recovered_at: datetime | None = None
    causes: tuple[Cause, ...] = ()
    snapshot: dict[str, Any] | None = None


class Notice(Struct, frozen=True, kw_only=True):
    workspace_id: UUID
    alert_id: UUID
    step: int
    kind: str
    attempt: int
    facts: Facts

    @property
    def id(self) -> str:
        """The same for all attempts and targets, so that a receiver can detect a repeat."""
        return f"{self.alert_id}-{self.kind}-{self.step}"


class AlertGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def evaluate_alerts(
        self,
        thresholds: dict[str, Any],
        window: timedelta,
        remind: timedelta,
        targets: Sequence[str],
        *,
        with_snapshot: bool,
    ) -> list[AlertChange]:
        rows = await self._database.fetch(
            "SELECT * FROM evaluate_alerts($1, $2, $3, $4, $5)",
            thresholds,
            window,
            remind,
            list(targets),
            with_snapshot,
        )
        return [convert(dict(row), AlertChange) for row in rows]

    async def working_conditions(self, thresholds: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """The thresholds of conditions that can be evaluated, and the errors of the others."""
        [row] = await self._database.fetch("SELECT * FROM working_conditions($1)", thresholds)
        return row["sound"], row["broken"]

    async def send_snapshot(self, every: timedelta, targets: Sequence[str]) -> bool:
        return bool(await self._database.fetchval("SELECT send_snapshot($1, $2)", every, list(targets)))

    async def abandon_notices(self, targets: Sequence[str], after: timedelta) -> dict[str, int]:
        """The number of abandoned notices, by target that is no longer configured."""
        rows = await self._database.fetch("SELECT * FROM abandon_notices($1, $2)", list(targets), after)
        return {row["target"]: row["notices"] for row in rows}

    async def next_notice(self, target: str) -> Notice | None:
        row = await self._database.fetchrow("SELECT * FROM next_notice($1)", target)
        if row is None:
            return None
        return Notice(
            workspace_id=row["workspace_id"],
            alert_id=row["alert_id"],
            step=row["step"],
            kind=row["kind"],
            attempt=row["attempt"],
            facts=convert(row["notice"], Facts),
        )

    async def record_notice_result(
        self, notice: Notice, target: str, outcome: str, error: str | None, wait: timedelta | None, base: timedelta
    ) -> None:
        await self._database.execute(
            "SELECT record_notice_result($1, $2, $3, $4, $5, $6, $7, $8)",
            *(notice.workspace_id, notice.alert_id, notice.step, target, outcome, error, wait, base),
        )

    async def count_alerts(self) -> dict[str, int]:
        """Open alerts by condition."""
        rows = await self._database.fetch("SELECT * FROM count_alerts()")
        return {row["condition"]: row["alerts"] for row in rows}
