"""Withdrawing deliveries: what waits is cancelled, what is being sent is not, and a wish that came too late is kept."""

import asyncio
import json

from db.support.builders import NEVER, permanent, released, sent, transient

WHO = {"operator": "ann", "reason": "a wrong price"}


async def cancel(tenant, *deliveries, partial=False):
    query = "SELECT * FROM cancel_deliveries($1, $2, $3, $4)"
    rows = await tenant.db.fetch(query, tenant.workspace, list(deliveries), json.dumps(WHO), partial)
    return [row["verdict"] for row in rows]


async def enqueued(tenant):
    await tenant.enqueue()
    return (await tenant.deliveries())[-1]["delivery_id"]


async def failed_once(tenant, **fields):
    delivery = await enqueued(tenant)
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim, **fields))
    return delivery


async def test_what_waits_is_cancelled_and_never_claimed(tenant):
    await tenant.channel()
    delivery = await enqueued(tenant)

    assert await cancel(tenant, delivery) == ["cancelled"]

    assert await tenant.claim() == []
    row = await tenant.delivery(delivery)
    assert (row["status"], row["attempt"], row["next_retry_at"]) == ("cancelled", 0, None)
    assert await tenant.history(delivery) == ["enqueue", "cancelled"]
    [event] = await tenant.events("cancelled")
    assert json.loads(event["meta"]).items() >= {**WHO, "from_status": "queued"}.items()
    assert await cancel(tenant, delivery) == ["already"]


async def test_what_waits_for_a_retry_is_cancelled(tenant):
    await tenant.channel()
    delivery = await failed_once(tenant)

    assert await cancel(tenant, delivery) == ["cancelled"]
    assert (await tenant.delivery(delivery))["next_retry_at"] is None


async def test_what_is_held_or_was_not_answered_is_cancelled_and_said_to_be_in_doubt(tenant):
    await tenant.channel()
    [unanswered] = [await failed_once(tenant, ambiguous=True)]
    await tenant.channel(on_ambiguous="hold")
    held = (await tenant.deliveries())[-1]["delivery_id"]

    assert await cancel(tenant, unanswered) == ["perhaps_sent"]

    assert await tenant.history(unanswered) == ["enqueue", "send_attempt", "retry_scheduled", "cancelled"]
    [event] = await tenant.events("cancelled")
    assert json.loads(event["meta"])["perhaps_sent"] is True
    assert held == unanswered


async def test_what_has_parts_in_the_channel_stays_unless_that_is_asked_for(tenant):
    await tenant.channel()
    delivery = await failed_once(tenant)
    await tenant.set_delivery(delivery, "render_meta = render_meta || $3", '{"series_progress": {"sent_items": [0]}}')

    assert await cancel(tenant, delivery) == ["partly_sent"]
    assert (await tenant.delivery(delivery))["status"] == "retry"
    assert await cancel(tenant, delivery, partial=True) == ["cancelled"]


async def test_what_is_being_sent_is_not_cancelled_but_a_failed_call_is_not_repeated(tenant):
    await tenant.channel()
    delivery = await enqueued(tenant)
    claim = await tenant.claim_one()

    assert await cancel(tenant, delivery) == ["too_late"]
    await tenant.commit(transient(claim))

    assert (await tenant.delivery(delivery))["status"] == "cancelled"
    assert await tenant.history(delivery) == ["enqueue", "send_attempt", "cancelled"]
    [event] = await tenant.events("cancelled")
    assert json.loads(event["meta"]).items() >= WHO.items()
    assert json.loads(event["error"])["code"] == "boom"


async def test_a_wish_that_came_too_late_ends_what_is_given_back(tenant):
    await tenant.channel()
    delivery = await enqueued(tenant)
    claim = await tenant.claim_one()
    await cancel(tenant, delivery)

    await tenant.commit(released(claim))

    assert (await tenant.delivery(delivery))["status"] == "cancelled"


async def test_a_wish_that_came_too_late_changes_nothing_of_a_send_or_a_refusal(tenant):
    await tenant.channel()
    arrived, refused = await enqueued(tenant), await enqueued(tenant)
    claims = {claim["delivery_id"]: claim for claim in await tenant.claim()}
    await cancel(tenant, arrived, refused)

    await tenant.commit(sent(claims[arrived]), permanent(claims[refused]))

    assert (await tenant.delivery(arrived))["status"] == "sent"
    assert (await tenant.delivery(refused))["status"] == "failed_permanent"


async def test_a_call_without_an_answer_is_held_when_a_cancel_was_asked_for(tenant):
    await tenant.channel()
    delivery = await enqueued(tenant)
    claim = await tenant.claim_one()
    await cancel(tenant, delivery)

    await tenant.commit(transient(claim, ambiguous=True))

    row = await tenant.delivery(delivery)
    assert (row["status"], row["next_retry_at"], row["hold_reason"]) == ("retry", NEVER, "ambiguous")
    assert await cancel(tenant, delivery) == ["perhaps_sent"]


async def test_an_expired_lease_is_held_when_a_cancel_was_asked_for(tenant):
    await tenant.channel()
    delivery = await enqueued(tenant)
    claim = await tenant.claim_one()
    await cancel(tenant, delivery)

    await tenant.recover(now=claim["sending_lease_until"].replace(year=claim["sending_lease_until"].year + 1))

    assert (await tenant.delivery(delivery))["hold_reason"] == "lease_expired"


async def test_what_has_ended_or_is_not_there_is_named(tenant):
    await tenant.channel()
    delivery = await enqueued(tenant)
    await tenant.drain()

    assert await cancel(tenant, delivery) == ["already"]
    assert await cancel(tenant, tenant.run_id) == ["not_found"]


async def test_a_cancelled_twin_does_not_suppress_the_same_content(tenant):
    await tenant.channel()
    await tenant.enqueue("the price is 10")
    [row] = await tenant.deliveries()
    await cancel(tenant, row["delivery_id"])

    answer = await tenant.enqueue("the price is 10")

    assert (answer["enqueued"], answer["deduped"]) == (1, 0)


async def test_a_cancelled_delivery_is_never_requeued(tenant, operator):
    await tenant.channel()
    delivery = await enqueued(tenant)
    await cancel(tenant, delivery)

    assert (await operator.requeue(delivery))[delivery]["verdict"] == "not_given_up"


async def test_a_cancel_and_a_claim_of_the_same_delivery_agree(tenant):
    """cancelled: no call. too_late: one."""
    await tenant.channel(max_parallel=1000)
    deliveries = [await enqueued(tenant) for _ in range(60)]

    verdicts, claims = await asyncio.gather(
        asyncio.gather(*(cancel(tenant, one) for one in deliveries)),
        asyncio.gather(*(tenant.claim(5) for _ in range(12))),
    )
    claimed = {claim["delivery_id"] for batch in claims for claim in batch}

    for delivery, [verdict] in zip(deliveries, verdicts, strict=True):
        assert verdict == ("too_late" if delivery in claimed else "cancelled")
        assert (await tenant.delivery(delivery))["status"] == ("sending" if delivery in claimed else "cancelled")
