"""What is told of a message and of a channel, and the timeline."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from db.support.builders import Tenant, sent, transient
from db.support.operators import Operator, held
from db.support.why_answers import ask_one

HOUR = timedelta(hours=1)


async def test_the_timeline_has_who_why_which_attempt_which_error_and_how_long_between(
    tenant: Tenant, operator: Operator
) -> None:
    delivery = (await held(tenant))["delivery_id"]
    channel = (await tenant.delivery(delivery))["channel_id"]
    await operator.pause(channel)
    await operator.resume(channel)
    await operator.resolve(delivery, "resend")
    await tenant.commit(sent(await tenant.claim_one()))

    told = (await ask_one(tenant, delivery))["history"]

    assert [(event["action"], event["of"], event.get("attempt"), event.get("code")) for event in told] == [
        ("send_attempt", "delivery", 1, None),
        ("held", "delivery", 1, "boom"),
        ("channel_paused", "channel", None, None),
        ("channel_enabled", "channel", None, None),
        ("manual_requeue", "delivery", 1, None),
        ("send_attempt", "delivery", 2, None),
        ("sent", "delivery", 2, None),
    ]
    assert {event.get("operator") for event in told[2:5]} == {"ann"}
    assert {event.get("reason") for event in told[2:5]} == {"because"}
    times = [datetime.fromisoformat(event["at"]) for event in told]
    assert [event.get("after_ms", 0) for event in told[1:]] == [
        pytest.approx((b - a) / timedelta(milliseconds=1), abs=1) for a, b in pairwise(times)
    ]


async def test_a_message_groups_its_channels_by_what_holds_them_and_names_those_it_did_not_go_to(
    tenant: Tenant, operator: Operator
) -> None:
    paused = await tenant.channels(2, title="paused")
    free = await tenant.channels(3, title="free")
    await tenant.channel(title="filtered", route_filter={"include_any": ["sport"]})
    answer = await tenant.enqueue("hello", tags=["news"])
    for channel in paused:
        await operator.pause(channel)
    for claim in await tenant.claim(1):
        await tenant.commit(sent(claim))
    await tenant.channel(title="new")

    told = await ask_one(tenant, answer["message_id"], limit=4)

    assert told["states"] == [
        {"status": "queued", "gate": "channel_paused", "count": 2},
        {"status": "queued", "gate": "queued_behind", "count": 2},
        {"status": "sent", "outcome": "sent", "count": 1},
    ]
    assert (told["total"], len(told["deliveries"])) == (5, 4)
    assert {UUID(one["channel_id"]) for one in told["deliveries"][:2]} == set(paused)
    assert all("channel resume" in one["command"] for one in told["deliveries"][:2])
    assert {one["title"] for one in told["deliveries"][2:]} == {"free"}
    assert {one["title"]: one["kept_by"] for one in told["elsewhere"]} == {
        "filtered": ["include_any"],
        "new": ["not asked for"],
    }
    assert told["elsewhere_total"] == 2
    assert len(free) == 3


async def test_a_message_that_was_posted_again_names_who_had_it_already(tenant: Tenant) -> None:
    channel = await tenant.channel(title="News")
    message = (await tenant.enqueue("hello"))["message_id"]
    await tenant.enqueue("hello")

    told = await ask_one(tenant, message)

    [delivery] = await tenant.deliveries()
    [suppressed] = told["suppressed"]
    assert (told["seen_count"], suppressed.pop("at") >= told["created_at"]) == (2, True)
    assert suppressed == {"channel_id": str(channel), "title": "News", "twin": str(delivery["delivery_id"])}


async def test_who_had_it_already_is_told_however_long_ago_that_was(tenant: Tenant) -> None:
    await tenant.channel(title="News")
    message = (await tenant.enqueue("hello"))["message_id"]
    await tenant.enqueue("hello")
    await tenant.db.execute("UPDATE messages SET last_seen_at = now() + interval '1 hour'")

    [suppressed] = (await ask_one(tenant, message))["suppressed"]

    assert suppressed["title"] == "News"


async def test_a_message_has_a_timeline_from_its_arrival_to_what_its_deliveries_did(tenant: Tenant) -> None:
    await tenant.channels(3, title="News")
    message = (await tenant.enqueue("hello", tags=["a"]))["message_id"]
    one, other, *_ = await tenant.claim()
    await tenant.commit(sent(one))
    await tenant.commit(transient(other, code="http_502"))
    await tenant.enqueue("hello", tags=["b"])

    told = (await ask_one(tenant, message))["history"]

    assert [(event["of"], event["action"], event.get("count"), event.get("code")) for event in told] == [
        ("message", "ingested", None, None),
        ("delivery", "enqueue", 3, None),
        ("delivery", "send_attempt", 3, None),
        ("delivery", "sent", None, None),
        ("delivery", "retry_scheduled", None, "http_502"),
        ("message", "message_tag_mismatch", None, None),
        ("message", "dedup_suppressed", 3, None),
    ]
    assert (told[3]["channel"], told[3]["delivery_id"]) == ("News", str(one["delivery_id"]))
    assert all(event["after_ms"] >= 0 for event in told[2:])
    short = (await ask_one(tenant, message, limit=2))["history"]
    assert [event["action"] for event in short] == ["ingested", "message_tag_mismatch", "dedup_suppressed"]


async def test_a_channel_has_its_gate_and_its_queue(tenant: Tenant, operator: Operator) -> None:
    channel = await tenant.channel(max_parallel=1, target_id="@news")
    _, _, later, *_ = await tenant.backlog(channel, 5)
    await tenant.set_delivery(later, "scheduled_for = $3", datetime.now(UTC) + HOUR)
    await tenant.claim()
    await operator.pause(channel)

    told, by_address = await ask_one(tenant, channel), await ask_one(tenant, "@news")

    assert (told["gate"]["gate"], told["gate"]["later"]) == ("channel_paused", ["max_parallel"])
    queue = told["queue"]
    assert (queue["waiting"], queue["later"], queue["held"], queue["sending"]) == (3, 1, 0, 1)
    assert [event["action"] for event in told["history"]] == ["channel_paused"]
    assert by_address["channel"] == told["channel"]
    await operator.resume(channel)
    await tenant.drain()


async def test_an_open_channel_has_no_gate(tenant: Tenant) -> None:
    told = await ask_one(tenant, await tenant.channel())

    assert told["gate"] is None


async def test_a_failed_attempt_is_in_the_answer_of_a_message(tenant: Tenant) -> None:
    await tenant.channel()
    message = (await tenant.enqueue("hello"))["message_id"]
    await tenant.commit(transient(await tenant.claim_one(), code="http_502"))

    [delivery] = (await ask_one(tenant, message))["deliveries"]

    assert (delivery["gate"], delivery["cause"]["code"]) == ("retry_backoff", "http_502")
