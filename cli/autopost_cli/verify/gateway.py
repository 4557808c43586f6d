"""The database calls of `autopost verify`: one method per SQL function, no other SQL."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from autopost_cli.operate.gateway import Connection, Row

FIRST = UUID(int=0)
BEGINNING = datetime.min.replace(tzinfo=UTC)
DELIVERIES = 1000
EVENTS = 5000
TURNS = 1000


class Size(Struct, frozen=True, kw_only=True):
    """The number of rows to check in a workspace."""

    deliveries: int
    queue_rows: int
    publications: int
    events: int
    turns: int


class StreamedEvent(Struct, frozen=True):
    """The fields of a stream message that identify its event."""

    id: UUID
    workspace_id: UUID
    seq: int
    ts: datetime


class Chunk(Struct, frozen=True, kw_only=True):
    """The result of one call. ``seqs`` and ``ids``: events that the audit stream must contain."""

    checked: int
    found: int
    differences: list[Row]
    seqs: Sequence[int] = ()
    ids: Sequence[UUID] = ()


class VerifyGateway:
    """A chunk is one statement, so its rows and their events are from one snapshot."""

    def __init__(self, connection: Connection, most: int) -> None:
        self._connection = connection
        self._most = most

    async def verify_size(self, workspace: UUID) -> Size:
        return Size(**await self._row("SELECT * FROM verify_size($1)", workspace))

    async def audit_cursor(self) -> Row | None:
        found: Row | None = await self._connection.fetchval("SELECT audit_cursor()")
        return found

    async def verify_deliveries(self, workspace: UUID) -> AsyncIterator[Chunk]:
        async for chunk in self._by_key("SELECT * FROM verify_deliveries($1, $2, $3, $4)", workspace):
            yield chunk

    async def verify_queue(self, workspace: UUID) -> AsyncIterator[Chunk]:
        async for chunk in self._by_key("SELECT * FROM verify_queue($1, $2, $3, $4)", workspace):
            yield chunk

    async def verify_publications(self, workspace: UUID) -> AsyncIterator[Chunk]:
        async for chunk in self._by_key("SELECT * FROM verify_publications($1, $2, $3, $4)", workspace):
            yield chunk

    async def verify_channels(self, workspace: UUID) -> AsyncIterator[Chunk]:
        yield _chunk(await self._row("SELECT * FROM verify_channels($1, $2)", workspace, self._most))

    async def verify_events(self, workspace: UUID, since: datetime, cursor: Row | None) -> AsyncIterator[Chunk]:
        query = "SELECT * FROM verify_events($1, $2, $3, $4, $5, $6, $7)"
        after = (BEGINNING, FIRST)
        while True:
            row = await self._row(query, workspace, *after, EVENTS, since, cursor, self._most)
            if not row["checked"]:
                return
            after = (row["last_ts"], row["last_id"])
            yield _chunk(row, seqs=row["seqs"], ids=row["ids"])

    async def verify_bot_turns(self, workspace: UUID) -> AsyncIterator[list[Row]]:
        """Pages of handled updates, a chat after the other. They are what people wrote: never print them."""
        after: Any = None
        while True:
            query = "SELECT * FROM verify_bot_turns($1, $2, $3)"
            rows = [dict(row) for row in await self._connection.fetch(query, workspace, after, TURNS)]
            yield rows
            if len(rows) < TURNS:
                return
            after = rows[-1]["place"]

    async def verify_bot_ruleset(self, workspace: UUID, ruleset_hash: str) -> Row | None:
        query = "SELECT verify_bot_ruleset($1, $2)"
        found: Row | None = await self._connection.fetchval(query, workspace, ruleset_hash)
        return found

    async def check_stream(
        self, streamed: Sequence[StreamedEvent], bodies: Sequence[str], since: datetime
    ) -> list[Row]:
        keys = ([getattr(one, name) for one in streamed] for name in ("workspace_id", "ts", "id", "seq"))
        query = "SELECT * FROM check_stream($1, $2, $3, $4, $5, $6)"
        return [dict(row) for row in await self._connection.fetch(query, *keys, bodies, since)]

    async def _by_key(self, query: str, workspace: UUID) -> AsyncIterator[Chunk]:
        after = FIRST
        while True:
            row = await self._row(query, workspace, after, DELIVERIES, self._most)
            if not row["checked"]:
                return
            after = row["last_id"]
            yield _chunk(row)

    async def _row(self, query: str, *given: Any) -> Row:
        [row] = await self._connection.fetch(query, *given)
        return dict(row)


def _chunk(row: Row, **more: Any) -> Chunk:
    return Chunk(checked=row["checked"], found=row["found"], differences=row["differences"], **more)
