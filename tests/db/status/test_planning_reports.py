"""Whatever the planner knows of the tables, a report reads the newest events of its window and no others."""

from typing import Any

import pytest
from db.support.builders import Tenant
from harness.databases import Database
from harness.statistics import EMPTY, NEVER_ANALYSED, forget_statistics

COUNTED = 100_000
EVENTS = 150_000
READ = """
    SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))
    FROM pg_stat_xact_user_tables
    WHERE relname LIKE 'events%'"""


@pytest.fixture
async def busy(database: Database, tenant: Tenant) -> Any:
    """A connection, after more was written within the window than is counted."""
    await tenant.channel()
    query = "INSERT INTO events (workspace_id, action) SELECT $1, 'checkpoint' FROM generate_series(1, $2)"
    connection = await database.connect()
    await connection.execute(query, tenant.workspace, EVENTS)
    return connection


@pytest.mark.parametrize("statistics", [None, NEVER_ANALYSED, EMPTY], ids=["true", "never analysed", "of empty tables"])
async def test_a_snapshot_reads_the_newest_events_alone(busy: Any, tenant: Tenant, statistics: int | None) -> None:
    if statistics is None:
        await busy.execute("ANALYZE")
    else:
        await forget_statistics(busy, statistics)

    async with busy.transaction():
        before = await busy.fetchval(READ)
        await busy.fetchval("SELECT snapshot($1)", tenant.workspace)
        read = await busy.fetchval(READ) - before

    assert COUNTED <= read <= COUNTED * 1.02
