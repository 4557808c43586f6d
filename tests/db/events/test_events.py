"""The audit log: written once, never changed, whoever asks and wherever the row lies."""

import asyncpg
import pytest

STATEMENTS = ["UPDATE {} SET meta = '{{}}'", "DELETE FROM {}", "TRUNCATE {}"]


@pytest.fixture
async def logged(tenant) -> None:
    await tenant.channel()
    await tenant.enqueue()


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_events_are_append_only(tenant, logged, statement):
    with pytest.raises(asyncpg.PostgresError) as refusal:
        await tenant.db.execute(statement.format("events"))

    assert refusal.value.sqlstate == "AP007"
    assert await tenant.count("events") == 1


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_so_is_each_of_their_partitions(tenant, logged, statement):
    partition = await tenant.db.fetchval("SELECT tableoid::regclass::text FROM events")

    with pytest.raises(asyncpg.PostgresError) as refusal:
        await tenant.db.execute(statement.format(partition))

    assert refusal.value.sqlstate == "AP007"


async def test_so_is_a_partition_that_is_added_later(tenant):
    await tenant.db.execute("SELECT ensure_event_partitions('100 days')")
    partitions = await tenant.db.fetch(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits i WHERE inhparent = 'events'::regclass"
    )

    for partition in partitions:
        with pytest.raises(asyncpg.PostgresError, match="append-only"):
            await tenant.db.execute(f"TRUNCATE {partition['name']}")


async def test_history_leaves_by_dropping_a_partition(tenant, logged):
    partition = await tenant.db.fetchval("SELECT tableoid::regclass::text FROM events")

    await tenant.db.execute(f"DROP TABLE {partition}")

    assert await tenant.count("events") == 0


async def test_an_event_carries_its_order_and_its_transaction(database, tenant):
    await tenant.channels(3)
    connection = await database.connect()

    async with connection.transaction():
        await tenant.on(connection).enqueue()
        xid = await connection.fetchval("SELECT pg_current_xact_id()::text")

    events = await tenant.db.fetch("SELECT seq, xid::text FROM events ORDER BY seq")
    assert {event["xid"] for event in events} == {xid}
    assert len({event["seq"] for event in events}) == 3
