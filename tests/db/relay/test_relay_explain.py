"""What the relay's questions cost: a few pages, whatever lies in the tables beside what they return."""

import json
from typing import Any

import pytest
from db.support.builders import Tenant
from db.support.relay_cursor import Cursor
from harness.databases import Database

pytestmark = pytest.mark.time_limit(480)

HISTORY = 100_000
WINDOW = 30_000
FILL = "INSERT INTO events (workspace_id, action) SELECT $1, 'checkpoint' FROM generate_series(1, $2)"


@pytest.fixture
async def cursor(quiet_database: Database) -> Cursor:
    return await Cursor.opened(quiet_database.pool)


@pytest.fixture
async def shop(cursor: Cursor) -> Tenant:
    """With a long history, all of it relayed."""
    tenant = await Tenant.create(cursor.db)
    await cursor.db.execute(FILL, tenant.workspace, HISTORY)
    await cursor.db.execute("VACUUM (ANALYZE) events")
    await cursor.db.execute("UPDATE relay_state SET lo = pg_current_xact_id(), hi = pg_current_xact_id()")
    return tenant


async def touched(cursor: Cursor, query: str, *arguments: Any) -> int:
    """Buffers, in the second of two runs: the first one fills the caches of the catalog."""
    async with cursor.db.acquire() as connection:
        for _ in range(2):
            [[plan]] = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}", *arguments)
    found = json.loads(plan)[0]["Plan"]
    return int(found["Shared Hit Blocks"] + found["Shared Read Blocks"])


async def pages(cursor: Cursor) -> int:
    found: int = await cursor.db.fetchval(
        "SELECT sum(pg_relation_size(inhrelid) / 8192)::int FROM pg_inherits WHERE inhparent = 'events'::regclass"
    )
    return found


async def chunk(cursor: Cursor, limit: int = 100) -> int:
    return await touched(cursor, "SELECT * FROM next_audit_events($1, $2)", cursor.holder, limit)


async def test_an_idle_relay_touches_a_few_pages(cursor, shop):
    assert await chunk(cursor) < 150
    assert await touched(cursor, "SELECT * FROM relay_lag()") < 150


async def test_a_small_window_costs_what_it_holds(cursor, shop):
    await cursor.db.execute(FILL, shop.workspace, 100)

    assert await chunk(cursor) < 150


@pytest.mark.parametrize("place", [0.01, 0.5, 0.99])
async def test_a_chunk_of_a_big_window_costs_what_it_returns_wherever_it_lies(cursor, shop, place):
    await cursor.db.execute(FILL, shop.workspace, WINDOW)
    await cursor.db.execute("VACUUM (ANALYZE) events")
    first = (await cursor.next(1))[0]["seq"]
    assert await cursor.db.fetchval("SELECT by_seq FROM relay_state")
    await cursor.advance(first + int(WINDOW * place))

    assert await pages(cursor) > 1500
    assert await chunk(cursor) < 150
