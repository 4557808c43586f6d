"""A relay as the database sees it: it holds its round, asks for events and says what the stream has."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from db.support.builders import Tenant

STREAM = datetime(2026, 1, 1, tzinfo=UTC)
MONTH = timedelta(days=30)


class Cursor:
    """A relay that holds its round, in the words of the tests."""

    def __init__(self, executor: Any, holder: UUID) -> None:
        self.db = executor
        self.holder = holder
        self.stream_seq = 0

    @classmethod
    async def opened(cls, executor: Any) -> "Cursor":
        made = cls(executor, uuid4())
        assert await made.take()
        assert await made.open()
        return made

    async def take(self) -> bool:
        query = "SELECT take_leader_lease('relay', $1, '10 seconds', '0')"
        taken: bool = await self.db.fetchval(query, self.holder)
        return taken

    async def open(self) -> bool:
        opened: bool = await self.db.fetchval("SELECT open_relay($1)", self.holder)
        return opened

    async def adopt(
        self, created: datetime = STREAM, last_seq: int | None = None, messages: int = 1, first_seq: int | None = 1
    ) -> str | None:
        last = self.stream_seq if last_seq is None else last_seq
        query = "SELECT adopt_stream($1, $2, $3, $4, $5, $6)"
        verdict: str | None = await self.db.fetchval(query, self.holder, created, first_seq, last, messages, MONTH)
        return verdict

    async def next(self, limit: int = 1000) -> list[asyncpg.Record]:
        return list(await self.db.fetch("SELECT * FROM next_audit_events($1, $2)", self.holder, limit))

    async def advance(self, seq: int) -> bool:
        self.stream_seq += 1
        moved: bool = await self.db.fetchval("SELECT advance_relay($1, $2, $3)", self.holder, seq, self.stream_seq)
        return moved

    async def dethrone(self) -> "Cursor":
        """Another relay, which has taken the round."""
        await self.db.execute("UPDATE leader_leases SET lease_until = clock_timestamp() - interval '1 second'")
        heir = Cursor(self.db, uuid4())
        assert await heir.take()
        return heir

    async def relay(self, limit: int = 1000) -> list[int]:
        """The seqs of everything there is, in the order in which it was handed out."""
        seqs: list[int] = []
        while events := await self.next(limit):
            seqs += [event["seq"] for event in events]
            assert len(events) <= limit
            assert await self.advance(seqs[-1])
        return seqs


async def seqs(tenant: Tenant) -> list[int]:
    return [row["seq"] for row in await tenant.db.fetch("SELECT seq FROM events ORDER BY seq")]
