"""Retention of deliveries and messages: what has ended long ago goes, and nothing that somebody still needs."""

import json
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from db.support.ages import age
from db.support.builders import Tenant, is_waiting, permanent, running, sent, transient
from harness.eventually import eventually

QUARTER = timedelta(days=90)
LONG_AGO = timedelta(days=100)


async def forget(tenant: Tenant, what: str = "deliveries", keep: timedelta = QUARTER, limit: int = 1000) -> int:
    """How many have gone; the walk ends."""
    after: Any = {}
    gone = 0
    for _ in range(100):
        query = f"SELECT retain_{what}($1, $2, $3)"
        step = json.loads(await tenant.db.fetchval(query, keep, json.dumps(after), limit))
        gone, after = gone + step["gone"], step["after"]
        if after is None:
            return gone
    raise AssertionError("the walk does not end")


async def drifting(tenant: Tenant) -> list[asyncpg.Record]:
    return list(await tenant.db.fetch("SELECT * FROM channel_drift($1)", tenant.workspace))


async def test_deliveries_that_ended_long_ago_go_and_counters_stay_right(tenant):
    await tenant.channels(3, max_parallel=2)
    await tenant.enqueue()
    await tenant.drain()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(*(transient(claim) for claim in await tenant.claim()))
    await age(tenant.db, LONG_AGO)
    await tenant.enqueue()

    assert await forget(tenant) == 6

    assert {row["status"] for row in await tenant.deliveries()} == {"queued"}
    assert await tenant.count("dead_letters") == 0
    assert await drifting(tenant) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
async def test_batches_of_any_size_come_to_the_same_end(tenant, limit):
    await tenant.channels(5)
    for _ in range(3):
        await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)

    assert await forget(tenant, limit=limit) == 15
    assert await tenant.count("deliveries") == 0


async def test_one_call_takes_no_more_than_its_share(tenant):
    await tenant.channels(10)
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)

    step = json.loads(await tenant.db.fetchval("SELECT retain_deliveries($1, '{}', 4)", QUARTER))

    assert (step["gone"], step["after"], await tenant.count("deliveries")) == (4, {}, 6)


async def test_what_is_live_stays_however_old_it_is(tenant):
    await tenant.channels(3)
    await tenant.enqueue()
    claims = await tenant.claim(2)
    await tenant.commit(transient(claims[0], retry_after_ms=60_000))
    await age(tenant.db, LONG_AGO)

    assert await forget(tenant) == 0
    assert sorted(row["status"] for row in await tenant.deliveries()) == ["queued", "retry", "sending"]


async def test_what_ended_within_the_period_stays_however_long_ago_it_was_enqueued(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await age(tenant.db, LONG_AGO)
    await tenant.drain()

    assert await forget(tenant) == 0


async def test_what_dedup_still_asks_for_stays(tenant):
    ttl = int(2 * LONG_AGO / timedelta(hours=1))
    kept = await tenant.channel(dedup_ttl_hours=ttl)
    await tenant.channel()
    await tenant.enqueue("hello")
    await tenant.drain()
    await age(tenant.db, LONG_AGO)

    assert await forget(tenant) == 1

    again = await tenant.enqueue("hello")
    assert (again["enqueued"], again["deduped"]) == (1, 1)
    assert kept in {row["channel_id"] for row in await tenant.deliveries() if row["status"] == "sent"}


async def test_a_failure_inside_the_dedup_time_may_go(tenant):
    await tenant.channel(dedup_ttl_hours=100_000)
    await tenant.enqueue()
    await tenant.commit(permanent(await tenant.claim_one()))
    await age(tenant.db, LONG_AGO)

    assert await forget(tenant) == 1


async def test_what_something_was_told_of_since_stays(tenant):
    """A late commit of a lost worker changes nothing, and yet somebody will look for what it speaks of."""
    await tenant.channel()
    await tenant.enqueue()
    claim = await tenant.claim_one()
    await tenant.commit(sent(claim))
    await age(tenant.db, LONG_AGO)
    await tenant.commit(sent(claim, claim_token="00000000-0000-4000-8000-000000000000"))

    assert [event["what"] for event in await tenant.events()][-1] == "stale_commit"
    assert await forget(tenant) == 0


async def test_of_a_requeue_and_retention_at_once_the_requeue_wins(database, tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(permanent(await tenant.claim_one()))
    await age(tenant.db, LONG_AGO)
    delivery = (await tenant.only_delivery())["delivery_id"]
    connection = await database.connect()

    async with connection.transaction():
        await connection.execute("SELECT verdict FROM requeue($1, $2, 'ann', 'again')", tenant.workspace, [delivery])
        assert await forget(tenant) == 0

    assert await forget(tenant) == 0
    assert (await tenant.only_delivery())["status"] == "retry"


async def test_a_message_goes_with_its_renderings_once_no_delivery_is_left(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)

    assert await forget(tenant, "messages") == 0
    await forget(tenant)
    assert await forget(tenant, "messages") == 1

    assert await tenant.count("messages") == await tenant.count("renderings") == 0


async def test_a_message_that_was_seen_again_stays(tenant):
    await tenant.enqueue("hello")
    await age(tenant.db, LONG_AGO)
    await tenant.enqueue("hello")

    assert await forget(tenant, "messages") == 0


async def test_a_message_that_is_being_enqueued_again_stays_and_gets_its_deliveries(database, tenant):
    await tenant.channel()
    await tenant.enqueue("hello")
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    await forget(tenant)
    connection = await database.connect()

    async with connection.transaction():
        await tenant.on(connection).enqueue("hello")
        assert await forget(tenant, "messages") == 0

    assert await forget(tenant, "messages") == 0
    assert await tenant.drain() == 1
    assert await tenant.count("messages") == await tenant.count("renderings") == 1


async def test_a_post_of_a_message_that_is_being_forgotten_waits_and_is_a_new_one(database, tenant):
    await tenant.channel()
    await tenant.enqueue("hello")
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    await forget(tenant)
    forgetting, posting = await database.connect(), await database.connect()

    async with forgetting.transaction():
        assert await forget(tenant.on(forgetting), "messages") == 1
        posted = running(tenant.on(posting).enqueue("hello"))
        await eventually(lambda: is_waiting(tenant.db, posting.get_server_pid()))
    answer = await posted

    assert (answer["new"], answer["enqueued"]) == (True, 1)
    assert await tenant.drain() == 1


async def test_renderings_that_no_delivery_is_left_of_go_while_the_message_stays(tenant):
    channel = await tenant.channel(dedup_ttl_hours=0)
    await tenant.enqueue("hello")
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    await tenant.set_channel(channel, "settings = '{\"silent\": true}'")
    await tenant.enqueue("hello")
    assert await tenant.count("renderings") == 2
    await forget(tenant)

    assert await forget(tenant, "messages") == 0

    assert await tenant.count("renderings") == 1
    [claim] = await tenant.claim()
    assert claim["delivery_id"] == (await tenant.only_delivery())["delivery_id"]
