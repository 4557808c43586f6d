"""A delivery belongs to a message and a channel that exist, as long as it does: for all rows of a statement at once."""

import asyncio

import asyncpg
import pytest
from db.support.builders import is_waiting
from harness.eventually import eventually

INSERT = """
INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash)
SELECT workspace_id, message_id, $2, hash_version, content_hash FROM messages WHERE workspace_id = $1
"""


async def delivered(tenant):
    channel = await tenant.channel()
    await tenant.backlog(channel, 1)
    return channel


async def test_no_delivery_without_its_channel(tenant):
    await delivered(tenant)

    with pytest.raises(asyncpg.ForeignKeyViolationError, match="no channel"):
        await tenant.db.execute(INSERT, tenant.workspace, tenant.workspace)


async def test_no_delivery_without_its_message(tenant):
    channel = await delivered(tenant)

    with pytest.raises(asyncpg.ForeignKeyViolationError, match="no message"):
        await tenant.db.execute(
            """INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash)
               VALUES ($1, gen_random_uuid(), $2, 1, 'x')""",
            tenant.workspace,
            channel,
        )


async def test_one_lost_among_many_refuses_them_all(tenant):
    channel = await delivered(tenant)
    before = await tenant.db.fetchval("SELECT count(*) FROM deliveries")

    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await tenant.db.execute(
            """INSERT INTO deliveries (workspace_id, message_id, channel_id, hash_version, content_hash)
               SELECT m.workspace_id, m.message_id, c, 1, 'x' FROM messages m, unnest($2::uuid[]) AS c
               WHERE m.workspace_id = $1""",
            tenant.workspace,
            [channel, tenant.workspace],
        )

    assert await tenant.db.fetchval("SELECT count(*) FROM deliveries") == before


@pytest.mark.parametrize("table", ["channels", "messages"])
async def test_what_a_delivery_belongs_to_cannot_be_deleted(tenant, table):
    await delivered(tenant)

    with pytest.raises(asyncpg.ForeignKeyViolationError, match=f"this row of {table}"):
        await tenant.db.execute(f"DELETE FROM {table} WHERE workspace_id = $1", tenant.workspace)


@pytest.mark.parametrize(("table", "key"), [("channels", "channel_id"), ("messages", "message_id")])
async def test_the_key_that_a_delivery_names_cannot_change(tenant, table, key):
    await delivered(tenant)

    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await tenant.db.execute(
            f"UPDATE {table} SET {key} = gen_random_uuid() WHERE workspace_id = $1", tenant.workspace
        )


async def test_what_nothing_belongs_to_can_be_deleted(tenant):
    channel = await tenant.channel()

    await tenant.db.execute("DELETE FROM channels WHERE channel_id = $1", channel)

    assert await tenant.db.fetchval("SELECT count(*) FROM channel_due WHERE channel_id = $1", channel) == 0


@pytest.mark.parametrize(
    "statement", ["DELETE FROM platform_limits", "UPDATE platform_limits SET rate_group = 'other'"]
)
async def test_a_rate_group_stays_as_long_as_a_channel_is_in_it(tenant, statement):
    channel = await delivered(tenant)

    with pytest.raises(asyncpg.ForeignKeyViolationError, match="rate group"):
        await tenant.db.execute(statement)

    await tenant.db.execute("UPDATE platform_limits SET rate_group = rate_group, rate_rps = 5")
    assert len(await tenant.claim()) == 1
    await tenant.set_channel(channel, "rate_group = 'new'")
    await tenant.db.execute("DELETE FROM platform_limits WHERE rate_group <> 'new'")


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
async def test_who_deletes_a_channel_waits_for_who_feeds_it(database, tenant, ends):
    await delivered(tenant)
    channel = await tenant.channel()
    feeder, deleter = await database.connect(), await database.connect()
    await feeder.execute("BEGIN")
    await feeder.execute(INSERT, tenant.workspace, channel)

    deleting = asyncio.create_task(deleter.execute("DELETE FROM channels WHERE channel_id = $1", channel))
    await eventually(lambda: is_waiting(database.pool, deleter.get_server_pid()))
    await feeder.execute(ends)

    if ends == "COMMIT":
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await deleting
    else:
        await deleting


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
async def test_who_feeds_a_channel_waits_for_who_deletes_it(database, tenant, ends):
    await delivered(tenant)
    channel = await tenant.channel()
    feeder, deleter = await database.connect(), await database.connect()
    await deleter.execute("BEGIN")
    await deleter.execute("DELETE FROM channels WHERE channel_id = $1", channel)

    feeding = asyncio.create_task(feeder.execute(INSERT, tenant.workspace, channel))
    await eventually(lambda: is_waiting(database.pool, feeder.get_server_pid()))
    await deleter.execute(ends)

    if ends == "COMMIT":
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await feeding
    else:
        await feeding


INDEXES = """
SELECT c.relname || ': ' || string_agg(i.relname, ', ' ORDER BY i.relname)
FROM pg_index x
JOIN pg_class c ON c.oid = x.indrelid
JOIN pg_class i ON i.oid = x.indexrelid
WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition AND x.indpred IS NULL
  AND c.relname = ANY ($1)
GROUP BY c.relname, x.indkey[0]
HAVING count(*) > 1
"""
HOT = ["channels", "channel_due", "deliveries", "delivery_queue", "events", "dead_letters", "messages", "renderings"]


async def test_no_two_indexes_of_a_hot_table_begin_alike(tenant):
    """A plan made on an empty table takes either, and keeps it."""
    found = await tenant.db.fetch(INDEXES, [*HOT, "ingest_runs", "ingress_receipts"])

    assert [row[0] for row in found] == []
