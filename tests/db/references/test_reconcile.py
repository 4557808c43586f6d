"""What events refer to is there, or was forgotten on purpose, or is found to be missing."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from db.events.test_retention_events import forget_all
from db.retain.test_retention import forget
from db.support.ages import age
from db.support.builders import Tenant, transient
from db.support.verified import differences

QUARTER = timedelta(days=90)
LONG_AGO = timedelta(days=100)


async def look(tenant: Tenant, limit: int = 1000) -> int:
    """Over the whole log; how many events there are."""
    events = 0
    while True:
        looked = json.loads(await tenant.db.fetchval("SELECT reconcile_events($1)", limit))
        events += looked["events"]
        if looked["over"]:
            return events


async def orphans(tenant: Tenant) -> dict[tuple[str, UUID], int]:
    rows = await tenant.db.fetch("SELECT * FROM orphan_events($1)", tenant.workspace)
    return {(row["what"], row["ref"]): row["events"] for row in rows}


async def lose(tenant: Tenant, statement: str, *args: Any) -> None:
    """Past the triggers, as a restore gone wrong would."""
    async with tenant.db.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(statement, *args)


async def restore(tenant: Tenant, table: str, row: asyncpg.Record) -> None:
    columns = [name for name in row.keys() if name != "plan_hash"]  # noqa: SIM118 -- a record iterates its values
    places = ", ".join(f"${place}" for place in range(1, len(columns) + 1))
    await lose(
        tenant, f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", *(row[name] for name in columns)
    )


async def test_a_sound_log_has_no_orphans_however_small_the_steps(tenant):
    await tenant.channels(3)
    await tenant.enqueue()
    await tenant.drain()

    assert [await look(tenant, limit) for limit in (1000, 1, 2, 9)] == [9] * 4
    assert await orphans(tenant) == {}


async def test_a_delivery_that_was_lost_is_found_and_struck_off_when_it_is_back(tenant):
    await tenant.channels(2)
    await tenant.enqueue()
    await tenant.drain()
    lost = (await tenant.deliveries())[0]
    await lose(tenant, "DELETE FROM deliveries WHERE delivery_id = $1", lost["delivery_id"])

    await look(tenant, 2)
    assert await orphans(tenant) == {("delivery", lost["delivery_id"]): 3}

    await restore(tenant, "deliveries", lost)
    await look(tenant, 2)
    assert await orphans(tenant) == {}


async def test_looking_twice_counts_nothing_twice(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.drain()
    delivery = (await tenant.only_delivery())["delivery_id"]
    await lose(tenant, "DELETE FROM deliveries")

    for limit in (1, 1000, 2):
        await look(tenant, limit)

    assert await orphans(tenant) == {("delivery", delivery): 3}


@pytest.mark.parametrize("what", ["message", "channel"])
async def test_so_are_messages_and_channels(tenant, what):
    await tenant.channel()
    await tenant.enqueue()
    ref = (await tenant.only_delivery())[f"{what}_id"]
    await lose(tenant, "DELETE FROM delivery_queue")
    await lose(tenant, f"DELETE FROM {what}s")

    await look(tenant)

    assert await orphans(tenant) == {(what, ref): 1}
    await lose(tenant, "DELETE FROM deliveries")


async def test_a_reference_into_another_workspace_is_one_too(tenant):
    other = await Tenant.create(tenant.db)
    channel = await other.channel()
    await tenant.db.execute(
        "INSERT INTO events (workspace_id, channel_id, action) VALUES ($1, $2, 'channel_paused')",
        *(tenant.workspace, channel),
    )

    await look(tenant)

    assert await orphans(tenant) == {("channel", channel): 1}
    assert await orphans(other) == {}


async def test_what_retention_took_is_not_missing(tenant):
    await tenant.channel()
    await tenant.enqueue("hello")
    await tenant.drain()
    await tenant.enqueue("hello")
    await age(tenant.db, timedelta(days=45))
    await forget_all(tenant)
    await age(tenant.db, timedelta(days=55))
    await age_checkpoints(tenant, timedelta(days=10))
    assert (await forget(tenant), await forget(tenant, "messages")) == (1, 1)
    assert {event["what"] for event in await tenant.events()} == {"checkpoint"}

    await look(tenant)

    assert await orphans(tenant) == {}


async def age_checkpoints(tenant: Tenant, at: timedelta) -> None:
    """Checkpoints tell when a row last changed: that was moved back as well."""
    await lose(
        tenant,
        "UPDATE events e SET ts = now() - $1::interval, meta = meta || jsonb_build_object('changed_at', d.updated_at) "
        "FROM deliveries d WHERE d.delivery_id = e.delivery_id AND e.action = 'checkpoint'",
        at,
    )


async def test_so_is_what_it_took_while_events_were_kept_for_longer(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    await forget(tenant)
    await forget(tenant, "messages")

    await look(tenant)

    assert await orphans(tenant) == {}
    assert len(await tenant.events()) == 3


async def test_a_period_that_is_made_longer_afterwards_accuses_nobody(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    await forget(tenant, keep=QUARTER)
    await tenant.enqueue()
    await tenant.drain()
    await forget(tenant, keep=timedelta(days=365))

    await look(tenant)

    assert await orphans(tenant) == {}


async def test_a_delivery_that_was_lost_after_the_last_retention_is_missing(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    await forget(tenant)
    await tenant.enqueue()
    await tenant.drain()
    young = (await tenant.only_delivery())["delivery_id"]
    await lose(tenant, "DELETE FROM deliveries")

    await look(tenant)

    assert await orphans(tenant) == {("delivery", young): 3}


async def test_a_live_delivery_is_missing_however_old_its_checkpoint_says_it_is(tenant):
    await tenant.channels(2)
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient((await tenant.claim(1))[0]))
    await age(tenant.db, LONG_AGO)
    await forget_all(tenant)
    live = next(row for row in await tenant.deliveries() if row["status"] == "queued")
    assert await forget(tenant) == 1
    await lose(tenant, "DELETE FROM delivery_queue")
    await lose(tenant, "DELETE FROM deliveries")

    await look(tenant)

    assert await orphans(tenant) == {("delivery", live["delivery_id"]): 1}


async def test_more_than_anybody_could_read_are_not_written_down(tenant):
    refs = [uuid4() for _ in range(20)]
    await tenant.db.execute(
        "INSERT INTO events (workspace_id, channel_id, action) SELECT $1, r, 'channel_paused' "
        "FROM unnest($2::uuid[]) AS r",
        *(tenant.workspace, refs),
    )

    looked = [json.loads(await tenant.db.fetchval("SELECT reconcile_events(8, 5)")) for _ in range(3)]

    assert [one["over"] for one in looked] == [False, False, True]
    assert len(await orphans(tenant)) == 5


async def nobody_takes(tenant: Tenant) -> None:
    """One new content, and one that was seen and whose channel is gone from the routes."""
    channel = await tenant.channel(route_filter={"include_any": ["news"]})
    await tenant.enqueue("seen", tags=["news"])
    await tenant.drain()
    await tenant.set_channel(channel, "enabled = false")
    for text in ("seen", "new"):
        assert (await tenant.enqueue(text, tags=["news"]))["routed"] == 0


async def test_the_event_of_a_post_that_no_channel_takes_refers_to_nothing_that_is_not_there(tenant):
    await nobody_takes(tenant)

    assert await look(tenant) == 5
    assert await orphans(tenant) == {}
    assert await differences(tenant.db, tenant.workspace) == []


async def test_nor_does_it_when_retention_has_taken_the_rest(tenant):
    await nobody_takes(tenant)
    await age(tenant.db, LONG_AGO)

    assert (await forget(tenant), await forget(tenant, "messages")) == (1, 1)

    await look(tenant)
    assert await orphans(tenant) == {}
    assert await differences(tenant.db, tenant.workspace) == []
    await forget_all(tenant)
    assert await tenant.events("enqueue") == []
