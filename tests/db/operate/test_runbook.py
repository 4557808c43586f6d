"""The operator's statements of the runbook, as they stand there, and a claim afterwards: the tables agree."""

from datetime import UTC, datetime, timedelta

import pytest
from db.support.builders import Tenant, permanent, sent, transient
from db.support.by_hand import ENABLE_GROUP, PAUSE, RELEASE_STALE, REQUEUE_DEAD, REQUEUE_FAILED
from db.support.consistency import consistent
from db.support.verified import kinds


async def ended(tenant: Tenant, ending, count: int = 3) -> list:
    """Deliveries of one channel with a single place, each claimed and ended so; the place is free again."""
    channel = await tenant.channel(max_parallel=1)
    deliveries = await tenant.backlog(channel, count)
    for delivery in deliveries:
        await tenant.set_delivery(delivery, "max_attempts = 1")
        await tenant.commit(ending(await tenant.claim_one()))
    await tenant.claim()
    return deliveries


@pytest.mark.parametrize(
    ("ending", "statement"),
    [(transient, REQUEUE_DEAD), (permanent, REQUEUE_FAILED)],
    ids=["3 dead", "4 failed_permanent"],
)
async def test_what_is_requeued_is_claimed_one_by_one(database, tenant, ending, statement):
    deliveries = await ended(tenant, ending)

    await tenant.db.execute(statement, tenant.workspace, deliveries)

    assert await consistent(database.pool, tenant.workspace)
    claimed = []
    while claims := await tenant.claim():
        assert len(claims) == 1
        assert await consistent(database.pool, tenant.workspace)
        claimed.append((claims[0]["delivery_id"], claims[0]["attempt"]))
        await tenant.commit(sent(claims[0]))
    assert claimed == [(delivery, 2) for delivery in deliveries]
    assert (await tenant.history(deliveries[0]))[-3:] == ["manual_requeue", "send_attempt", "sent"]


@pytest.mark.parametrize(
    ("ending", "statement"),
    [(transient, REQUEUE_DEAD), (permanent, REQUEUE_FAILED), (None, RELEASE_STALE)],
    ids=["3 dead", "4 failed_permanent", "10 stale"],
)
async def test_what_came_back_by_hand_is_what_its_events_say(database, tenant, ending, statement):
    await tenant.channel()
    await tenant.enqueue(max_attempts=1)
    delivery = (await tenant.only_delivery())["delivery_id"]
    claim = await tenant.claim_one()
    if ending:
        await tenant.commit(ending(claim))
        await tenant.db.execute(statement, tenant.workspace, [delivery])
    else:
        await tenant.set_delivery(delivery, "sending_started_at = now() - interval '11 minutes'")
        await tenant.db.execute(statement, tenant.workspace)

    assert (await tenant.history(delivery))[-1] == "manual_requeue"
    assert await kinds(database.pool, tenant.workspace) == set()
    later = datetime.now(UTC) + timedelta(seconds=16)
    [again] = await tenant.claim(now=later)
    await tenant.commit(sent(again))
    assert await kinds(database.pool, tenant.workspace) == set()
    tenant.now = later


async def test_what_failed_with_its_channel_is_not_requeued(tenant):
    deliveries = await ended(tenant, lambda claim: permanent(claim, "channel"), count=1)

    await tenant.db.execute(REQUEUE_FAILED, tenant.workspace, deliveries)

    assert (await tenant.only_delivery())["status"] == "failed_permanent"


async def test_what_was_held_given_up_and_requeued_is_claimed(tenant):
    await tenant.backlog(await tenant.channel(on_ambiguous="hold"), 1)
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim, ambiguous=True))
    await tenant.set_delivery(claim["delivery_id"], "status = 'dead'")

    await tenant.db.execute(REQUEUE_DEAD, tenant.workspace, [claim["delivery_id"]])

    assert (await tenant.claim_one())["delivery_id"] == claim["delivery_id"]


async def test_10_what_is_released_frees_its_place_and_its_worker_is_stale(database, tenant):
    channel = await tenant.channel(max_parallel=2)
    deliveries = await tenant.backlog(channel, 4)
    lost, fresh = await tenant.claim()
    await tenant.set_delivery(deliveries[2], "status = 'claimed', claimed_at = now() - interval '11 minutes'")
    await tenant.set_delivery(lost["delivery_id"], "sending_started_at = now() - interval '11 minutes'")

    await tenant.db.execute(RELEASE_STALE, tenant.workspace)

    assert await consistent(database.pool, tenant.workspace)
    statuses = [(await tenant.delivery(delivery))["status"] for delivery in deliveries]
    assert statuses == ["retry", "sending", "retry", "queued"]
    assert [claim["delivery_id"] for claim in await tenant.claim()] == [deliveries[3]]
    assert await consistent(database.pool, tenant.workspace)
    verdicts = await tenant.commit(sent(lost), sent(fresh))
    assert [verdict["verdict"] for verdict in verdicts] == ["stale", "committed"]
    later = datetime.now(UTC) + timedelta(seconds=16)
    assert [claim["delivery_id"] for claim in await tenant.claim(now=later)] == [deliveries[0]]
    tenant.now = later


async def test_5_and_8_a_pause_keeps_what_was_queued_and_enabling_hands_it_out(tenant):
    channels = await tenant.channels(3)
    for channel in channels:
        await tenant.backlog(channel, 1)
    await tenant.db.execute(PAUSE, tenant.workspace, channels)
    held = await tenant.claim()

    await tenant.db.execute(ENABLE_GROUP, tenant.workspace)

    assert (len(held), len(await tenant.claim())) == (0, 3)
