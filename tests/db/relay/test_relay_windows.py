"""What the relay is given to publish: every committed event, in the order of seq, whatever commits when."""

import asyncio
from typing import Any

import pytest
from db.support.builders import Tenant, sent
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


async def test_every_event_is_handed_out_once_in_the_order_of_seq(cursor, shop):
    for _ in range(4):
        await shop.enqueue()
    await shop.drain()

    handed = await cursor.relay(limit=5)

    assert handed == await seqs(shop)
    assert await cursor.next() == []


async def test_what_was_not_advanced_is_handed_out_again(cursor, shop):
    await shop.enqueue()
    first = await cursor.next(limit=2)

    again = await cursor.next(limit=2)

    assert [event["id"] for event in again] == [event["id"] for event in first]


async def test_an_event_carries_what_its_row_says_and_its_trace(cursor, shop):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await shop.enqueue(traceparent=parent)

    [event, *_] = await cursor.next()

    row = await cursor.db.fetchrow("SELECT *, action::text, result::text FROM events WHERE id = $1", event["id"])
    same = ("seq", "workspace_id", "ts", "attempt", "delivery_id", "message_id", "channel_id", "error", "meta")
    assert [event[name] for name in same] == [row[name] for name in same]
    assert (event["action"], event["result"]) == ("enqueue", "ok")
    assert event["traceparent"] == parent


async def test_who_comes_after_a_crash_goes_on_in_the_same_window(cursor, shop):
    await shop.enqueue()
    [first, *_] = await cursor.next(limit=1)
    await cursor.advance(first["seq"])
    window = await cursor.db.fetchrow("SELECT lo, hi FROM relay_state")
    await shop.enqueue()

    heir = await cursor.dethrone()
    assert await heir.open()
    await heir.next()

    assert await cursor.db.fetchrow("SELECT lo, hi FROM relay_state") == window
    assert await heir.relay() == [seq for seq in await seqs(shop) if seq > first["seq"]]


async def test_who_lost_the_round_reads_nothing_and_moves_nothing(cursor, shop):
    await shop.enqueue()
    events = await cursor.next()
    await cursor.dethrone()
    before = await cursor.db.fetchrow("SELECT * FROM relay_state")

    assert not await cursor.open()
    assert not await cursor.adopt(STREAM + MONTH)
    assert await cursor.next() == []
    assert not await cursor.advance(events[-1]["seq"])

    assert await cursor.db.fetchrow("SELECT * FROM relay_state") == before


async def test_an_old_writer_holds_back_what_came_after_it_and_nothing_is_lost_or_out_of_order(cursor, shop):
    async with cursor.db.acquire() as slow:
        held = slow.transaction()
        await held.start()
        await shop.on(slow).enqueue()
        for _ in range(3):
            await shop.enqueue()
        assert await cursor.relay() == []

        await held.commit()

    assert await cursor.relay(limit=4) == await seqs(shop)


async def test_a_transaction_that_locked_before_it_read_does_not_come_before_its_cause(cursor, shop):
    """Its xid is older than that of the enqueue whose delivery it claims."""
    async with cursor.db.acquire() as early:
        held = early.transaction()
        await held.start()
        await early.execute("SELECT pg_current_xact_id()")
        await shop.enqueue()
        claims = await shop.on(early).claim()
        await held.commit()
    assert claims
    rows = await cursor.db.fetch("SELECT xid::text::int AS xid, action::text FROM events ORDER BY seq")
    assert rows[0]["action"] == "enqueue"
    assert rows[0]["xid"] > rows[-1]["xid"]

    assert await cursor.relay(limit=2) == await seqs(shop)


async def test_a_big_window_is_read_along_seq_in_chunks(cursor, shop):
    await cursor.db.execute(
        "INSERT INTO events (workspace_id, action) SELECT $1, 'checkpoint' FROM generate_series(1, 25000)",
        shop.workspace,
    )
    await cursor.db.execute("SELECT setval('events_seq', 1000000000)")  # numbers without events are strode over
    await cursor.db.execute(
        "INSERT INTO events (workspace_id, action) SELECT $1, 'checkpoint' FROM generate_series(1, 2500)",
        shop.workspace,
    )

    handed = await cursor.relay(limit=1000)

    assert handed == await seqs(shop)


async def test_an_idle_relay_writes_nothing(cursor, shop):
    await shop.enqueue()
    await cursor.relay()
    before = await cursor.db.fetchval("SELECT xmin::text FROM relay_state")

    await asyncio.gather(*(cursor.db.execute("SELECT pg_current_xact_id()") for _ in range(3)))
    assert await cursor.next() == []

    assert await cursor.db.fetchval("SELECT xmin::text FROM relay_state") == before


async def test_under_eight_claimers_no_delivery_is_out_of_order(cursor, shop):
    handed: list[Any] = []
    done = asyncio.Event()

    async def produce() -> None:
        for _ in range(40):
            await shop.enqueue()

    async def work() -> None:
        while not done.is_set() or await shop.claim(1):
            for claim in await shop.claim(5):
                await shop.commit(sent(claim))

    async def relay() -> None:
        while events := await cursor.next(7):
            handed.extend(events)
            await cursor.advance(events[-1]["seq"])

    workers = [asyncio.create_task(work()) for _ in range(8)]
    await asyncio.gather(*(produce() for _ in range(3)))
    await relay()
    done.set()
    await asyncio.gather(*workers)
    await relay()

    by_delivery: dict[Any, list[int]] = {}
    for event in handed:
        by_delivery.setdefault(event["delivery_id"], []).append(event["seq"])
    assert {event["seq"] for event in handed} == set(await seqs(shop))
    assert len(handed) == len(await seqs(shop))
    assert all(order == sorted(order) for order in by_delivery.values())
