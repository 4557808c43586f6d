"""Leaving something dead on purpose: out of the alert, and back in it when it dies again."""

from uuid import uuid4

import pytest
from db.operate.test_runbook import REQUEUE_DEAD
from db.support.builders import transient
from db.support.operators import BY_HAND, dead, meta, refused


async def test_what_is_skipped_stays_dead_and_leaves_the_alert(tenant, operator):
    one, other = await dead(tenant, await tenant.channel(), 2)

    assert await operator.skip(one) == ["skipped"]

    row = await tenant.delivery(one)
    event = (await tenant.events())[-1]
    assert (row["status"], row["attempt"], row["event_count"]) == ("dead", 1, 3)
    assert (event["what"], event["attempt"], event["delivery_id"]) == ("manual_skip", 1, one)
    assert meta(event) == {**BY_HAND, "code": "boom"}
    assert await operator.alerting() == 1
    assert (await tenant.delivery(other))["status"] == "dead"


async def test_only_the_dead_are_skipped_and_only_once(tenant, operator):
    channel = await tenant.channel()
    [lost] = await dead(tenant, channel)
    wrong = await refused(tenant, channel)

    assert await operator.skip(lost, wrong) == ["skipped", "not_dead"]
    nobody = uuid4()
    assert await operator.skip(nobody, lost) == ["not_found", "already_skipped"]
    assert len(await tenant.events("manual_skip")) == 1


@pytest.mark.parametrize("by_hand", [False, True], ids=["requeue", "raw sql"])
async def test_what_is_requeued_after_a_skip_and_dies_again_is_alerted_again(tenant, operator, by_hand):
    [delivery] = await dead(tenant, await tenant.channel())
    await operator.skip(delivery)

    if by_hand:
        await tenant.db.execute(REQUEUE_DEAD, tenant.workspace, [delivery])
    else:
        await operator.requeue(delivery, attempts=1)
    assert await operator.alerting() == 0
    while (await tenant.delivery(delivery))["status"] == "retry":
        await tenant.commit(transient(await tenant.claim_one(), retry_after_ms=0))

    assert (await tenant.delivery(delivery))["status"] == "dead"
    assert await operator.alerting() == 1


async def test_what_retention_deletes_is_no_longer_given_up(tenant, operator):
    deliveries = await dead(tenant, await tenant.channel(), 2)

    await tenant.db.execute("DELETE FROM deliveries WHERE delivery_id = $1", deliveries[0])

    assert await tenant.count("dead_letters") == 1
