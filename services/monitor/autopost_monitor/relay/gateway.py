"""The relay's database calls: one method per SQL function, no other SQL.

All but ``relay_lag`` are fenced by the holder: a replica that lost the leadership reads and changes nothing.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from autopost_contracts.events import AuditEvent
from autopost_runtime.nats.ordered_publisher import StreamState
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert


class PendingEvent(Struct, frozen=True):
    """An event to publish, and its trace if known."""

    event: AuditEvent
    traceparent: str | None


class Lag(Struct, frozen=True, kw_only=True):
    """How far the stream is behind, and the transaction that blocks it, if any."""

    events: int
    seconds: float
    blocking_pid: int | None
    blocking_application: str | None
    blocking_state: str | None
    blocking_seconds: float | None
    blocking_command: str | None


class RelayGateway:
    def __init__(self, database: Database, holder: UUID) -> None:
        self._database = database
        self._holder = holder

    async def open_relay(self) -> bool:
        return bool(await self._database.fetchval("SELECT open_relay($1)", self._holder))

    async def adopt_stream(self, sight: StreamState, max_age: timedelta) -> str | None:
        verdict: str | None = await self._database.fetchval(
            "SELECT adopt_stream($1, $2, $3, $4, $5, $6)",
            *(self._holder, sight.created, sight.first_seq, sight.last_seq, sight.messages, max_age),
        )
        return verdict

    async def next_audit_events(self, limit: int) -> list[PendingEvent]:
        rows = await self._database.fetch("SELECT * FROM next_audit_events($1, $2)", self._holder, limit)
        return [_waiting(dict(row)) for row in rows]

    async def advance_relay(self, seq: int, stream_seq: int) -> bool:
        return bool(await self._database.fetchval("SELECT advance_relay($1, $2, $3)", self._holder, seq, stream_seq))

    async def relay_lag(self) -> Lag:
        [row] = await self._database.fetch("SELECT * FROM relay_lag()")
        return convert(dict(row), Lag)


def _waiting(row: dict[str, Any]) -> PendingEvent:
    """Not validated on purpose: an action of a newer version must not block the relay."""
    traceparent = row.pop("traceparent")
    return PendingEvent(AuditEvent(**row), traceparent)
