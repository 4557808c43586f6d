"""What operators ask about last week is read along its time, whatever the planner knows of the tables."""

import json
from typing import Any

import pytest
from db.support.ages import OLD_WEEKS
from db.support.builders import Tenant
from harness.databases import Database
from harness.statistics import EMPTY, NEVER_ANALYSED, forget_statistics

OLD = 100_000
RECENT = 100
MOST = 2_000
"""Buffers, for a hundred rows with a look at each delivery."""
GIVEN_UP = """
WITH delivery AS (
    INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash, status, last_error,
                            created_at, updated_at)
    SELECT $1, gen_random_uuid(), $2, 1, n::text, 'dead', '{"code": "boom"}', at, at
    FROM generate_series(1, $3) AS n
    CROSS JOIN LATERAL (SELECT now() - $4::interval + n * interval '1 ms') AS t (at)
    RETURNING delivery_id, channel_id, created_at
), lost AS (
    INSERT INTO dead_letters (workspace_id, delivery_id, channel_id, status, given_up_at)
    SELECT $1, delivery_id, channel_id, 'dead', created_at FROM delivery
)
INSERT INTO events (workspace_id, delivery_id, channel_id, action, result, error, ts)
SELECT $1, delivery_id, channel_id, 'dead_letter', 'error', '{"code": "boom"}', created_at FROM delivery
"""
ASKED = {
    "dead letters": "SELECT * FROM match_dead_letters($1, 'dead', p_since => now() - interval '7 days')",
    "all that was given up": "SELECT * FROM match_dead_letters($1, p_since => now() - interval '7 days')",
    "errors": "SELECT * FROM recent_errors($1, '7 days', 200)",
    **{
        condition: f"SELECT * FROM {condition}(1) WHERE workspace_id = $1"
        for condition in ("condition_failed_permanent", "condition_cooled_groups", "condition_bot_errors")
    },
}


@pytest.fixture
async def shop(database: Database, tenant: Tenant) -> Tenant:
    """Two weeks ago nearly everything failed, since then a little."""
    channel = await tenant.channel()
    connection = await database.connect()
    await connection.execute(OLD_WEEKS)
    await connection.execute("SET session_replication_role = replica")
    for count, age in ((OLD, "14 days"), (RECENT, "1 day")):
        await connection.execute(GIVEN_UP.replace("$4", f"'{age}'"), tenant.workspace, channel, count)
    return tenant


@pytest.mark.parametrize(
    "rows", [NEVER_ANALYSED, EMPTY, None], ids=["never analysed", "analysed while empty", "analysed"]
)
async def test_what_was_given_up_last_week_costs_what_is_told(database, shop, rows):
    connection = await database.connect()
    await (connection.execute("ANALYZE") if rows is None else forget_statistics(connection, rows))

    read = {name: await touched(connection, query, shop.workspace) for name, query in ASKED.items()}

    assert {name: count for name, count in read.items() if count > MOST} == {}


async def touched(connection: Any, query: str, *arguments: Any) -> int:
    """Buffers of the second of two runs, which makes no plan."""
    for _ in range(2):
        told = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}", *arguments))
    plan = told[0]["Plan"]
    assert plan["Actual Rows"] in (RECENT, 0)
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
