"""What was refused and not told is told by a timer, once, whoever's timer comes first."""

import json

from db.ingress.test_refuse_ingress import HOLD, SECOND, refuse, told
from db.support.senders import make_sender

FLUSH = "SELECT flush_refusals()"


async def test_what_waits_for_its_second_is_told_when_that_is_over(tenant):
    sender = await make_sender(tenant)
    await refuse(sender)
    await tenant.db.execute(HOLD)
    for _ in range(3):
        await refuse(sender)

    too_early = await tenant.db.fetchval(FLUSH)
    await tenant.db.execute(SECOND)
    in_time = await tenant.db.fetchval(FLUSH)
    nothing_left = await tenant.db.fetchval(FLUSH)

    assert (too_early, in_time, nothing_left) == (0, 1, 0)
    assert await told(tenant) == [("ingress_rate_limited", 1), ("ingress_rate_limited", 3)]
    assert await sender.runs() == [{"rate_limited": 1}, {"rate_limited": 3}]


async def test_each_endpoint_has_a_run_of_its_own_with_all_its_counters(tenant):
    senders = [await make_sender(tenant) for _ in range(3)]
    for sender in senders:
        await refuse(sender)
    await tenant.db.execute(HOLD)
    for sender in senders:
        await refuse(sender, "ingress_payload_rejected", "payload_rejected")
        await refuse(sender, "ingress_dedup_dropped", "dedup_dropped")

    await tenant.db.execute(SECOND)
    flushed = await tenant.db.fetchval(FLUSH)

    assert flushed == 3
    runs = await tenant.db.fetch("SELECT endpoint_id, stats_json FROM ingest_runs ORDER BY started_at DESC LIMIT 3")
    assert {row["endpoint_id"] for row in runs} == {sender.endpoint for sender in senders}
    assert [json.loads(row["stats_json"]) for row in runs] == [{"payload_rejected": 1, "dedup_dropped": 1}] * 3


async def test_of_two_timers_one_tells_and_the_other_does_not_wait(database, tenant):
    sender = await make_sender(tenant)
    await refuse(sender)
    await tenant.db.execute(HOLD)
    for _ in range(2):
        await refuse(sender)
    await tenant.db.execute(SECOND)
    first, second = await database.connect(), await database.connect()

    async with first.transaction():
        flushed = [await first.fetchval(FLUSH), await second.fetchval(FLUSH, timeout=5)]

    assert flushed == [1, 0]
    assert [count for _, count in await told(tenant)] == [1, 2]


async def test_many_refusals_are_told_with_one_call(tenant):
    sender = await make_sender(tenant)

    await tenant.db.execute(
        "SELECT refuse_ingress($1, $2, 'push', 'ingress_rate_limited', 'rate_limited', '{}', NULL, 500)",
        *(tenant.workspace, sender.endpoint),
    )

    assert await told(tenant) == [("ingress_rate_limited", 500)]
    assert await sender.runs() == [{"rate_limited": 500}]
