"""The database calls of operators, as role `autopost_operator`: one method per SQL function, no other SQL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import MAXYEAR, datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import msgspec

from autopost_cli.operate.times import FOREVER

SESSION = {
    "application_name": "autopost-operator",
    "timezone": "UTC",
    "lock_timeout": "10s",  # fail with an error instead of waiting for a lock
    "jit": "off",
}

Connection: TypeAlias = "asyncpg.Connection[Any]"
Row: TypeAlias = dict[str, Any]


@asynccontextmanager
async def connected(database_url: str, role: str = "autopost_operator") -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(database_url, timeout=10, server_settings={**SESSION, "role": role})
    try:
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=lambda given: msgspec.json.encode(given).decode(), decoder=_decoded
        )
        yield connection
    finally:
        await connection.close()


class ChannelSelection(msgspec.Struct, frozen=True, kw_only=True):
    """One channel, or all channels of a rate group."""

    channel: UUID | None = None
    rate_group: str | None = None
    platform: str | None = None


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects dead and failed_permanent deliveries; ``None`` matches all."""

    status: str | None = None
    code: str | None = None
    channel: UUID | None = None
    message: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


class DeadLetterPage(msgspec.Struct, frozen=True, kw_only=True):
    deliveries: list[UUID]
    last_at: datetime
    last_id: UUID


class OperatorGateway:
    """Calls in one workspace, signed by one operator."""

    def __init__(self, connection: Connection, workspace: UUID, operator: str = "", reason: str = "") -> None:
        self._connection = connection
        self.workspace = workspace
        self._signed = (operator, reason)

    @asynccontextmanager
    async def transaction(self, dry_run: bool) -> AsyncIterator[None]:
        """One transaction; a dry run is rolled back."""
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            yield
        except BaseException:
            await transaction.rollback()
            raise
        if dry_run:
            await transaction.rollback()
        else:
            await transaction.commit()

    async def snapshot(self) -> Row:
        return await snapshot(self._connection, self.workspace)

    async def recent_errors(self, window: timedelta, limit: int) -> list[Row]:
        return await self._rows("SELECT * FROM recent_errors($1, $2, $3)", window, limit)

    async def list_channels(self) -> list[Row]:
        return await self._rows("SELECT * FROM list_channels($1)")

    async def read_channel_settings(self) -> list[Row]:
        return await self._rows("SELECT * FROM read_channel_settings($1)")

    async def requeue(self, deliveries: Sequence[UUID], attempts: int, force: bool, dry_run: bool) -> list[Row]:
        query = "SELECT * FROM requeue($1, $2, $3, $4, $5, $6, $7)"
        return await self._rows(query, list(deliveries), *self._signed, attempts, force, dry_run)

    async def match_dead_letters(
        self, wanted: Filter, after: DeadLetterPage | None, limit: int
    ) -> DeadLetterPage | None:
        """The next page, oldest first; ``None`` at the end."""
        filters = (wanted.status, wanted.code, wanted.channel, wanted.message, wanted.since, wanted.until)
        query = "SELECT * FROM match_dead_letters($1, $2, $3, $4, $5, $6, $7, p_limit => $8)"
        given: list[Any] = [*filters, limit]
        if after:
            query = query.replace("p_limit => $8", "p_limit => $8, p_after_at => $9, p_after_id => $10")
            given += [after.last_at, after.last_id]
        rows = await self._connection.fetch(query, self.workspace, *given)
        if not rows:
            return None
        deliveries = [row["delivery_id"] for row in rows]
        return DeadLetterPage(deliveries=deliveries, last_at=rows[-1]["given_up_at"], last_id=deliveries[-1])

    async def list_dead_letters(
        self, publication: UUID | None, error_type: str | None, open_only: bool, limit: int
    ) -> list[Row]:
        query = "SELECT * FROM list_dead_letters($1, $2, $3, $4, $5)"
        return await self._rows(query, publication, error_type, open_only, limit)

    async def retry_publication(self, publication: UUID, version: int) -> Row:
        return await self._document("SELECT retry_publication($1, $2, $3, $4, $5)", publication, version, *self._signed)

    async def turn_workspace(self, status: str) -> Row:
        return await self._document(
            "SELECT turn_workspace($1, $2::text::workspace_status, $3, $4)", status, *self._signed
        )

    async def skip(self, deliveries: Sequence[UUID]) -> list[Row]:
        return await self._rows("SELECT * FROM skip($1, $2, $3, $4)", list(deliveries), *self._signed)

    async def release_stale(self, force: bool) -> list[Row]:
        return await self._rows("SELECT * FROM release_stale($1, $2, $3, $4)", *self._signed, force)

    async def recount(self) -> list[Row]:
        return await self._rows("SELECT * FROM recount($1)")

    async def resolve_ambiguous(self, delivery: UUID, decision: str, found: str | None) -> Row:
        query = "SELECT resolve_ambiguous($1, $2, $3, $4, $5, $6)"
        return await self._document(query, delivery, decision, *self._signed, found)

    async def pause_channels(self, target: ChannelSelection, length: timedelta | None) -> list[Row]:
        query = "SELECT * FROM pause_channels($1, $2, $3, $4, $5, $6, $7)"
        return await self._rows(query, target.channel, target.rate_group, *self._signed, length, target.platform)

    async def resume_channels(self, target: ChannelSelection) -> list[Row]:
        return await self._on("SELECT * FROM resume_channels($1, $2, $3, $4, $5, $6)", target)

    async def disable_channels(self, target: ChannelSelection) -> list[Row]:
        return await self._on("SELECT * FROM disable_channels($1, $2, $3, $4, $5, $6)", target)

    async def enable_channels(self, target: ChannelSelection) -> list[Row]:
        return await self._on("SELECT * FROM enable_channels($1, $2, $3, $4, $5, $6)", target)

    async def read_bot_access(self, secret_hash: str | None) -> Row | None:
        rows = await self._connection.fetch("SELECT * FROM read_bot_access($1, $2)", self.workspace, secret_hash)
        return dict(rows[0]) if rows else None

    async def set_bot_webhook(self, url: str | None) -> Row:
        return await self._document("SELECT set_bot_webhook($1, $2, $3, $4)", url, *self._signed)

    async def note_webhooks(self, subscriptions: list[Row]) -> None:
        await self._connection.fetchval("SELECT note_webhooks($1, $2)", self.workspace, subscriptions)

    async def rotate_auth(self, channel: UUID, auth_ref: str, rate_group: str | None, force: bool) -> Row:
        query = "SELECT rotate_auth($1, $2, $3, $4, $5, $6, $7)"
        return await self._document(query, channel, auth_ref, rate_group, *self._signed, force)

    async def _on(self, query: str, target: ChannelSelection) -> list[Row]:
        return await self._rows(query, target.channel, target.rate_group, *self._signed, target.platform)

    async def _rows(self, query: str, *given: Any) -> list[Row]:
        rows = await self._connection.fetch(query, self.workspace, *given)
        return [{name: _plain(value) for name, value in row.items()} for row in rows]

    async def _document(self, query: str, *given: Any) -> Row:
        answer: Row = await self._connection.fetchval(query, self.workspace, *given)
        return answer


async def snapshot(connection: Connection, workspace: UUID | None) -> Row:
    """Of all workspaces when ``workspace`` is ``None``."""
    answer: Row = await connection.fetchval("SELECT snapshot($1)", workspace)
    return answer


async def list_workspaces(connection: Connection) -> list[Row]:
    return [dict(row) for row in await connection.fetch("SELECT * FROM list_workspaces()")]


def _plain(value: Any) -> Any:
    """asyncpg returns the last day of the calendar for 'infinity'."""
    endless = isinstance(value, datetime) and value.year == MAXYEAR
    return FOREVER if endless else value


def _decoded(text: str) -> Any:
    return msgspec.json.decode(text)
