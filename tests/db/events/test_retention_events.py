"""Old events leave by partitions, and what is kept can still be folded."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from db.support.ages import age, partitions
from db.support.builders import Tenant, is_waiting, permanent, running, sent, transient
from db.support.operators import Operator
from harness.eventually import eventually

MONTH = timedelta(days=30)
LONG_AGO = timedelta(days=60)


async def checkpoint(tenant: Tenant, partition: str, limit: int = 1000) -> int:
    """How many deliveries were looked at."""
    seen = 0
    while (page := await tenant.db.fetchval("SELECT checkpoint_deliveries($1, $2)", partition, limit)) is not None:
        seen += page
    return seen


async def drop(tenant: Tenant, partition: str, keep: timedelta = MONTH, *, relayed: bool = False) -> str:
    verdict: str = await tenant.db.fetchval("SELECT drop_event_partition($1, $2, $3)", partition, keep, relayed)
    return verdict


async def forget_all(tenant: Tenant) -> None:
    for partition in await partitions(tenant.db):
        await checkpoint(tenant, partition)
        assert await drop(tenant, partition) == "dropped"


async def differences(tenant: Tenant) -> list[dict[str, Any]]:
    nothing = UUID(int=0)
    found = await tenant.db.fetchval("SELECT differences FROM verify_deliveries($1, $2)", tenant.workspace, nothing)
    return list(json.loads(found))


async def the_old_one(tenant: Tenant) -> str:
    """The partition that has the events of long ago."""
    name: str = await tenant.db.fetchval("SELECT tableoid::regclass::text FROM events ORDER BY seq LIMIT 1")
    return name


async def test_a_partition_goes_when_all_of_it_is_old_and_the_delivery_keeps_a_checkpoint(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    before = await tenant.only_delivery()

    await forget_all(tenant)

    [event] = await tenant.events()
    after = await tenant.only_delivery()
    meta = json.loads(event["meta"])
    assert (event["what"], event["delivery_id"], event["attempt"]) == ("checkpoint", before["delivery_id"], 1)
    assert (meta["status"], meta["provider_message_id"], meta["event_count"]) == ("sent", "17", 4)
    assert (after["event_count"], after["updated_at"]) == (4, before["updated_at"])
    assert await partitions(tenant.db) == []


async def every_kind(tenant: Tenant, operator: Operator) -> None:
    """A delivery in every state there is, each by the way that leads there."""
    channel = await tenant.channel()
    for outcome in (sent, permanent, lambda claim: transient(claim, retry_after_ms=9_000_000)):
        await tenant.enqueue()
        await tenant.commit(outcome(await tenant.claim_one()))
    for _ in range(2):
        await tenant.enqueue(max_attempts=1)
        await tenant.commit(transient(await tenant.claim_one()))
    dead = await tenant.db.fetchval("SELECT delivery_id FROM deliveries WHERE status = 'dead' LIMIT 1")
    await tenant.db.execute("SELECT skip($1, $2, 'ann', 'seen')", tenant.workspace, [dead])
    await tenant.enqueue("twice", audit_deduped=True)
    await tenant.enqueue("twice", audit_deduped=True)
    await tenant.claim_one()
    await tenant.set_channel(channel, "on_ambiguous = 'hold'")
    await tenant.enqueue()
    await tenant.commit(transient(await tenant.claim_one(), ambiguous=True))
    await tenant.enqueue()


async def test_deliveries_in_every_state_fold_to_their_rows_before_and_after(tenant, operator):
    await every_kind(tenant, operator)
    await age(tenant.db, LONG_AGO)
    assert await differences(tenant) == []

    await forget_all(tenant)

    assert await differences(tenant) == []
    states = {row["status"] for row in await tenant.deliveries()}
    assert states == {"sent", "failed_permanent", "retry", "dead", "deduped", "sending", "queued"}
    assert {event["what"] for event in await tenant.events()} == {"checkpoint"}


async def test_a_delivery_goes_on_from_its_checkpoint(tenant, operator):
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))
    await age(tenant.db, LONG_AGO)
    await forget_all(tenant)

    delivery = (await tenant.only_delivery())["delivery_id"]
    await tenant.db.execute("SELECT verdict FROM requeue($1, $2, 'ann', 'again')", tenant.workspace, [delivery])
    await tenant.drain()

    assert await tenant.history(delivery) == ["checkpoint", "manual_requeue", "send_attempt", "sent"]
    assert await differences(tenant) == []


async def test_a_checkpoint_that_is_there_serves_for_later_partitions_too(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=1))
    await age(tenant.db, timedelta(days=14))
    await tenant.drain()
    await age(tenant.db, LONG_AGO)

    await forget_all(tenant)

    delivery = (await tenant.only_delivery())["delivery_id"]
    assert await tenant.history(delivery) == ["checkpoint"]


async def test_a_walk_that_was_cut_short_goes_on_where_it_was(tenant):
    await tenant.channels(5)
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    partition = await the_old_one(tenant)

    await tenant.db.fetchval("SELECT checkpoint_deliveries($1, 2)", partition)
    early = await drop(tenant, partition)
    seen = await checkpoint(tenant, partition, limit=2)

    assert (early, seen) == ("unchecked", 3)
    assert len(await tenant.events("checkpoint")) == 5
    assert await drop(tenant, partition) == "dropped"


async def test_two_that_checkpoint_at_once_write_one_each(tenant):
    await tenant.channels(20)
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    partition = await the_old_one(tenant)

    await asyncio.gather(*(checkpoint(tenant, partition, limit=3) for _ in range(4)))

    assert len(await tenant.events("checkpoint")) == 20
    assert await differences(tenant) == []


async def test_a_checkpoint_waits_for_whoever_is_changing_the_delivery(database, tenant):
    await tenant.channel()
    await tenant.enqueue()
    claim = await tenant.claim_one()
    await age(tenant.db, LONG_AGO)
    partition = await the_old_one(tenant)
    committing, checking = await database.connect(), await database.connect()

    async with committing.transaction():
        await tenant.on(committing).commit(sent(claim))
        walk = running(checkpoint(tenant.on(checking), partition))
        await eventually(lambda: is_waiting(tenant.db, checking.get_server_pid()))
    await walk

    assert await tenant.history(claim["delivery_id"]) == ["enqueue", "send_attempt", "sent", "checkpoint"]
    assert await differences(tenant) == []


async def test_young_partitions_stay(tenant):
    await tenant.channel()
    await tenant.enqueue()
    await age(tenant.db, timedelta(days=29))

    partition = await the_old_one(tenant)
    await checkpoint(tenant, partition)

    assert partition not in await partitions(tenant.db)
    assert await drop(tenant, partition) == "young"


async def pass_relay(tenant: Tenant, **columns: str) -> None:
    given = {"lo": "pg_current_xact_id()", "floor_seq": "0", "system_identifier": "system_identifier", **columns}
    await tenant.db.execute(
        f"INSERT INTO relay_state (relay, {', '.join(given)}) "
        f"SELECT 'audit', {', '.join(given.values())} FROM pg_control_system()"
    )


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        (None, "unrelayed"),
        ({"lo": "'1'"}, "unrelayed"),
        ({"system_identifier": "1"}, "unrelayed"),
        ({"sweep_from": "0"}, "unrelayed"),
        ({}, "dropped"),
        ({"lo": "'1'", "floor_seq": "1000000"}, "dropped"),
        ({"lo": "'1'", "since": "now() - interval '1 day'"}, "dropped"),
    ],
    ids=["no relay", "behind", "another cluster", "sweeping", "passed", "passed in another cluster", "not wanted"],
)
async def test_a_partition_waits_for_the_relay(tenant, columns, verdict):
    await tenant.channel()
    await tenant.enqueue()
    await age(tenant.db, LONG_AGO)
    partition = await the_old_one(tenant)
    await checkpoint(tenant, partition)
    if columns is not None:
        await pass_relay(tenant, **columns)

    assert await drop(tenant, partition, relayed=True) == verdict


async def test_a_partition_that_somebody_reads_stays_for_now_and_holds_up_nobody(database, tenant):
    await tenant.channel()
    await tenant.enqueue()
    await age(tenant.db, LONG_AGO)
    partition = await the_old_one(tenant)
    await checkpoint(tenant, partition)
    reader = await database.connect()

    async with reader.transaction():
        await reader.fetchval("SELECT count(*) FROM events")
        verdict = await drop(tenant, partition)
        await tenant.enqueue()

    assert verdict == "busy"
    assert await drop(tenant, partition) == "dropped"


async def test_partitions_ahead_is_the_time_without_a_gap(tenant):
    ahead = "SELECT partitions_ahead()"
    plenty = await tenant.db.fetchval(ahead)
    third = "SELECT partition FROM event_partitions() WHERE since > now() ORDER BY since OFFSET 1 LIMIT 1"
    await tenant.db.execute(f"DROP TABLE {await tenant.db.fetchval(third)}")

    assert plenty >= timedelta(days=30)
    assert timedelta(days=7) < await tenant.db.fetchval(ahead) <= timedelta(days=14)


async def test_without_a_partition_for_now_there_is_no_time_ahead(tenant):
    await tenant.db.execute(
        "DO $$ DECLARE p text; BEGIN FOR p IN SELECT partition FROM event_partitions() LOOP "
        "EXECUTE 'DROP TABLE ' || p; END LOOP; END $$"
    )

    assert await tenant.db.fetchval("SELECT partitions_ahead()") <= timedelta(0)
