"""The calls of alerts into the database: one method per function, no other SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from autopost_runtime.postgres import Database
from msgspec import Struct, convert


class Moved(Struct, frozen=True, kw_only=True):
    """An alert that was opened, lasts, or is over."""

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
    """A delivery, or whatever else ``autopost why`` knows."""


class Facts(Struct, frozen=True, kw_only=True):
    """What a target is told, as it was when it came about."""

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
        """The same at every attempt and for every target, so that a receiver can tell a repeat."""
        return f"{self.alert_id}-{self.kind}-{self.step}"


class AlertGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def judge_alerts(
        self,
        thresholds: dict[str, Any],
        window: timedelta,
        remind: timedelta,
        targets: Sequence[str],
        *,
        with_snapshot: bool,
    ) -> list[Moved]:
        rows = await self._database.fetch(
            "SELECT * FROM judge_alerts($1, $2, $3, $4, $5)", thresholds, window, remind, list(targets), with_snapshot
        )
        return [convert(dict(row), Moved) for row in rows]

    async def tell_snapshot(self, every: timedelta, targets: Sequence[str]) -> bool:
        return bool(await self._database.fetchval("SELECT tell_snapshot($1, $2)", every, list(targets)))

    async def abandon_notices(self, targets: Sequence[str], after: timedelta) -> dict[str, int]:
        """How many, by the target that nobody tells any more."""
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

    async def settle_notice(
        self, notice: Notice, target: str, outcome: str, error: str | None, wait: timedelta | None, base: timedelta
    ) -> None:
        await self._database.execute(
            "SELECT settle_notice($1, $2, $3, $4, $5, $6, $7, $8)",
            *(notice.workspace_id, notice.alert_id, notice.step, target, outcome, error, wait, base),
        )

    async def count_alerts(self) -> dict[str, int]:
        """Open ones, by condition."""
        rows = await self._database.fetch("SELECT * FROM count_alerts()")
        return {row["condition"]: row["alerts"] for row in rows}
