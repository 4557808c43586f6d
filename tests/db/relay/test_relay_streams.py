"""What the relay is given again: after a stream lost its messages, and after a database moved to another cluster."""

from datetime import timedelta

import asyncpg
import pytest
from db.support.builders import Tenant
from db.support.relay_cursor import MONTH, STREAM, Cursor, seqs
from harness.databases import Database


@pytest.fixture
async def cursor(quiet_database: Database) -> Cursor:
    return await Cursor.opened(quiet_database.pool)


@pytest.fixture
async def shop(cursor: Cursor) -> Tenant:
    tenant = await Tenant.create(cursor.db)
    await tenant.channels(3)
    return tenant


@pytest.mark.parametrize(
    ("stream", "verdict"),
    [
        ({"created": STREAM + timedelta(seconds=1), "messages": 0, "last_seq": 0}, "again"),
        ({"created": STREAM + timedelta(seconds=1), "messages": 5, "last_seq": 900}, "again"),
        ({"messages": 1, "last_seq": 1}, "again"),
        ({"messages": 0, "last_seq": 900, "first_seq": 901}, "again"),
        ({"messages": 5, "last_seq": 905, "first_seq": 901}, "cut"),
        ({"messages": 904, "last_seq": 905, "first_seq": 2}, "cut"),
    ],
    ids=["made anew", "made anew and written to", "an older copy", "emptied", "emptied and written to", "cut"],
)
async def test_a_stream_that_lost_its_messages_gets_all_of_them_again(cursor, shop, stream, verdict):
    for _ in range(3):
        await shop.enqueue()
    assert not await cursor.adopt()
    await cursor.relay(limit=4)

    assert await cursor.adopt(**stream) == verdict
    assert await cursor.relay(limit=4) == await seqs(shop)

    assert not await cursor.adopt(**stream | {"messages": 9, "last_seq": 1000})


async def test_a_stream_that_is_as_it_was_gets_nothing_twice(cursor, shop):
    assert not await cursor.adopt(messages=0, last_seq=0)
    await shop.enqueue()
    await cursor.relay()

    assert not await cursor.adopt(messages=3)

    assert await cursor.next() == []


async def test_what_leaves_the_stream_by_its_age_is_not_missed(cursor, shop):
    """Nothing was written for a day, a month ago: so what is the first today is far younger than what left."""
    await cursor.adopt()
    for _ in range(3):
        await shop.enqueue()
    await cursor.relay(limit=4)
    await cursor.db.execute("UPDATE relay_marks SET marked_at = marked_at - interval '30 days'")

    assert await cursor.adopt(first_seq=3) is None
    assert await cursor.db.fetchval("SELECT stream_seq FROM relay_marks") == cursor.stream_seq

    assert await cursor.adopt(first_seq=cursor.stream_seq + 2, last_seq=900) == "cut"


async def test_a_stream_with_other_limits_may_lose_its_beginning(cursor, shop):
    await cursor.adopt()
    await shop.enqueue()
    await cursor.relay()

    assert await cursor.adopt(first_seq=None) is None


async def test_what_would_have_left_the_stream_by_its_age_is_not_published_again(cursor, shop):
    await shop.enqueue()
    await cursor.db.execute(
        "CREATE TABLE events_old PARTITION OF events FOR VALUES FROM ('2020-01-06 00:00+00') TO ('2020-01-13 00:00+00')"
    )
    await cursor.db.execute(
        "INSERT INTO events (workspace_id, ts, action) VALUES ($1, '2020-01-07', 'checkpoint')", shop.workspace
    )
    await cursor.adopt()
    everything = await cursor.relay()

    await cursor.adopt(created=STREAM + MONTH)

    assert await cursor.relay() == everything[:-1]


async def test_in_another_cluster_what_was_left_goes_first_and_transactions_start_again(cursor, shop):
    """The identifier of the old cluster stands in the row; its xids are far ahead of ours, or far behind."""
    await shop.enqueue()
    relayed = await cursor.relay()
    await pretend_older(cursor, relayed, 5_000_000)
    await shop.enqueue()
    left = [seq for seq in await seqs(shop) if seq not in relayed]
    await pretend_older(cursor, left, 5_000_900)
    await cursor.db.execute("UPDATE relay_state SET system_identifier = 1, lo = '5000100', hi = '5000100'")

    assert await cursor.open()
    await shop.enqueue()

    assert await cursor.relay(limit=2) == [seq for seq in await seqs(shop) if seq not in relayed]
    assert await cursor.next() == []


async def test_a_wipe_after_a_restore_brings_back_what_both_clusters_wrote(cursor, shop):
    await shop.enqueue()
    await pretend_older(cursor, await seqs(shop), 5_000_000)
    await cursor.db.execute("UPDATE relay_state SET system_identifier = 1, lo = '4000000', hi = '4000000'")
    await cursor.open()
    await shop.enqueue()
    await cursor.adopt()
    await cursor.relay()

    await cursor.adopt(created=STREAM + MONTH)

    assert await cursor.relay() == await seqs(shop)


async def test_a_second_restore_during_the_first_sweep_loses_nothing(cursor, shop):
    await shop.enqueue()
    await pretend_older(cursor, await seqs(shop), 9_000_000)
    await cursor.db.execute("UPDATE relay_state SET system_identifier = 1, lo = '8000000', hi = '8000000'")
    await cursor.open()
    [first, *_] = await cursor.next(limit=1)
    await cursor.advance(first["seq"])
    await shop.enqueue()
    await cursor.db.execute("UPDATE relay_state SET system_identifier = 2")

    await cursor.open()

    assert set(await cursor.relay()) == set(await seqs(shop))


async def test_a_writer_that_is_open_during_a_restore_is_not_lost(cursor, shop):
    async with cursor.db.acquire() as slow:
        held = slow.transaction()
        await held.start()
        await shop.on(slow).enqueue()
        await cursor.db.execute("UPDATE relay_state SET system_identifier = 1")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await cursor.open()
        await held.commit()

    assert await cursor.open()
    assert await cursor.relay() == await seqs(shop)


async def pretend_older(cursor: Cursor, seqs: list[int], xid: int) -> None:
    """As a dump brings them: with the transactions of the cluster they came from."""
    async with cursor.db.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute("UPDATE events SET xid = $2::text::xid8 WHERE seq = ANY ($1)", seqs, str(xid))
