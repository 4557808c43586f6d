"""Cancelling, rescheduling and replacing what one request posted, alone and against claims."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from db.support.builders import Tenant, sent
from db.support.senders import Sender, make_sender
from db.support.verified import differences

WHO = json.dumps({"operator": "endpoint", "reason": "cancelled by the sender"})
LATER = datetime.now(UTC) + timedelta(days=30)
CHANNELS, POSTS = 4, 250
"""A thousand deliveries, each of them cancelled or rescheduled while it may be claimed."""


@pytest.fixture
async def sender(tenant: Tenant) -> Sender:
    await tenant.channels(2)
    return await make_sender(tenant)


async def cancel(tenant: Tenant, post: dict[str, Any], *, by_run: bool = True, force: bool = False) -> dict[str, Any]:
    run = UUID(post["run_id"]) if by_run else None
    query = "SELECT cancel_post($1, $2, $3, NULL, $4, false, $5)"
    answer = await tenant.db.fetchval(query, tenant.workspace, run, UUID(post["message_id"]), WHO, force)
    return dict(json.loads(answer))


async def reschedule(tenant: Tenant, post: dict[str, Any], at: datetime | None = LATER) -> dict[str, Any]:
    query = "SELECT reschedule_post($1, $2, $3, NULL, $4, $5)"
    ids = UUID(post["run_id"]), UUID(post["message_id"])
    return dict(json.loads(await tenant.db.fetchval(query, tenant.workspace, *ids, at, WHO)))


async def replace(sender: Sender, old: dict[str, Any], text: str, **fields: Any) -> dict[str, Any]:
    post = {**await sender.tenant.post(text, **fields), "run_id": str(uuid4())}
    query = "SELECT replace_post($1, $2, $3, $4, NULL, $5, $6, $7)"
    ids = UUID(old["run_id"]), UUID(old["message_id"])
    tenant = sender.tenant
    answer = await tenant.db.fetchval(query, tenant.workspace, sender.endpoint, *ids, json.dumps(post), text, WHO)
    return dict(json.loads(answer))


def verdicts(change: dict[str, Any]) -> list[str]:
    return [delivery["verdict"] for delivery in change["deliveries"]]


async def statuses(tenant: Tenant) -> Counter[str]:
    return Counter(row["status"] for row in await tenant.deliveries())


async def test_a_cancelled_post_is_never_sent_and_a_second_cancel_says_already(tenant: Tenant, sender: Sender) -> None:
    post = await sender.push("a")

    first, second = await cancel(tenant, post), await cancel(tenant, post)

    assert (first["verdict"], verdicts(first)) == ("cancelled", ["cancelled"] * 2)
    assert (second["verdict"], verdicts(second)) == ("already", ["already"] * 2)
    assert await tenant.claim() == []
    assert len(await tenant.events("cancelled")) == 2
    assert await differences(tenant.db, tenant.workspace) == []


async def test_the_corrected_post_is_accepted_under_the_same_source_ref_and_the_same_one_is_a_duplicate(
    tenant: Tenant, sender: Sender
) -> None:
    post = await sender.push("the price is 10", source_ref="1")
    await cancel(tenant, post)

    same = await sender.push("the price is 10", source_ref="1")
    corrected = await sender.push("the price is 11", source_ref="1")
    again = await sender.push("the price is 12", source_ref="1")

    assert [answer["verdict"] for answer in (same, corrected, again)] == ["duplicate", "accepted", "duplicate"]
    assert again["first_run_id"] == corrected["run_id"]
    assert await statuses(tenant) == {"cancelled": 2, "queued": 2}


async def test_the_same_content_may_be_posted_again(tenant: Tenant, sender: Sender) -> None:
    await cancel(tenant, await sender.push("a", source_ref="1"))

    answer = await sender.push("a", source_ref="2")

    assert (answer["enqueued"], answer["deduped"]) == (2, 0)


async def test_only_what_the_request_posted_is_cancelled(tenant: Tenant, sender: Sender) -> None:
    first = await sender.push("a", source_ref="1")
    await tenant.channels(1)
    second = await sender.push("a", source_ref="2")

    change = await cancel(tenant, second)

    assert (first["message_id"], second["enqueued"]) == (second["message_id"], 1)
    assert verdicts(change) == ["cancelled"]
    assert await statuses(tenant) == {"queued": 2, "cancelled": 1}


async def test_what_another_request_relies_on_is_shared_and_needs_force(tenant: Tenant, sender: Sender) -> None:
    first = await sender.push("a", source_ref="1")
    await sender.push("a", source_ref="2")

    shared, forced = await cancel(tenant, first), await cancel(tenant, first, force=True)

    assert (shared["verdict"], verdicts(shared)) == ("shared", ["shared"] * 2)
    assert verdicts(forced) == ["cancelled"] * 2


async def test_by_message_all_requests_are_cancelled(tenant: Tenant, sender: Sender) -> None:
    await sender.push("a", source_ref="1")
    second = await sender.push("a", source_ref="2")

    change = await cancel(tenant, second, by_run=False)

    assert verdicts(change) == ["cancelled"] * 2
    assert (await sender.push("b", source_ref="1"))["verdict"] == "accepted"


async def test_a_new_time_is_taken_until_the_first_call(tenant: Tenant, sender: Sender) -> None:
    post = await sender.push("a", scheduled_for=LATER.isoformat())

    sooner = await reschedule(tenant, post, None)
    claims = await tenant.claim(1)
    late = await reschedule(tenant, post)

    assert (sooner["verdict"], verdicts(sooner)) == ("rescheduled", ["rescheduled"] * 2)
    assert len(claims) == 1
    assert sorted(verdicts(late)) == ["rescheduled", "too_late"]
    assert await tenant.claim() == []
    [event, *_] = await tenant.events("rescheduled")
    assert json.loads(event["meta"])["from"] is not None
    assert (await reschedule(tenant, post, LATER + timedelta(days=400)))["verdict"] == "too_far"
    assert await differences(tenant.db, tenant.workspace) == []


async def test_a_post_is_replaced_as_a_whole(tenant: Tenant, sender: Sender) -> None:
    old = await sender.push("the price is 10", source_ref="1")

    answer = await replace(sender, old, "the price is 11", source_ref="1")

    assert (answer["verdict"], answer["enqueued"]) == ("accepted", 2)
    assert await statuses(tenant) == {"cancelled": 2, "queued": 2}
    assert {json.loads(event["meta"])["replaced_by"] for event in await tenant.events("cancelled")} == {
        answer["run_id"]
    }


async def test_nothing_is_replaced_when_a_part_of_it_is_being_sent(tenant: Tenant, sender: Sender) -> None:
    old = await sender.push("the price is 10", source_ref="1")
    await tenant.claim(1)

    answer = await replace(sender, old, "the price is 11", source_ref="1")

    assert (answer["verdict"], sorted(verdicts(answer["cancel"]))) == ("not_replaced", ["cancelled", "too_late"])
    assert await statuses(tenant) == {"sending": 1, "queued": 1}
    assert await tenant.db.fetchval("SELECT count(*) FROM deliveries WHERE cancel_request IS NOT NULL") == 0
    assert await tenant.count("messages") == 1


async def test_nothing_is_cancelled_when_the_new_post_reaches_nobody(tenant: Tenant, sender: Sender) -> None:
    old = await sender.push("a")

    answer = await replace(sender, old, "b", routing={"channels": [str(uuid4())]})

    assert answer["verdict"] == "refused"
    assert await statuses(tenant) == {"queued": 2}


async def test_of_a_thousand_changes_against_claims_each_agrees_with_what_was_sent(tenant: Tenant) -> None:
    """cancelled and rescheduled: no call. too_late: one."""
    await tenant.channels(CHANNELS, max_parallel=1000, rate_rps=None)
    await tenant.db.execute("UPDATE platform_limits SET rate_rps = NULL")
    sender = await make_sender(tenant)
    posts = [await sender.push(str(number)) for number in range(POSTS)]
    told: dict[str, str] = {}
    left = iter(enumerate(posts))

    async def change() -> None:
        for number, post in left:
            answer = await (cancel(tenant, post) if number % 2 else reschedule(tenant, post))
            told.update({delivery["delivery_id"]: delivery["verdict"] for delivery in answer["deliveries"]})

    async def claim() -> None:
        while len(told) < POSTS * CHANNELS:
            claims = await tenant.claim(20)
            await tenant.commit(*(sent(claim) for claim in claims))

    async with asyncio.timeout(60):
        await asyncio.gather(*(change() for _ in range(4)), claim(), claim())

    calls = {
        str(row["delivery_id"]): row["calls"]
        for row in await tenant.db.fetch(
            "SELECT d.delivery_id, (SELECT count(*) FROM events e WHERE e.delivery_id = d.delivery_id "
            "AND e.action = 'send_attempt') AS calls FROM deliveries d"
        )
    }
    expected = {"cancelled": 0, "rescheduled": 0, "too_late": 1, "already": 1}
    assert len(told) == POSTS * CHANNELS
    assert {name: (verdict, calls[name]) for name, verdict in told.items() if calls[name] != expected[verdict]} == {}
    assert min(Counter(told.values())[verdict] for verdict in ("cancelled", "rescheduled")) > 0
    assert sum(calls.values()) > 0
    assert await differences(tenant.db, tenant.workspace, chunk=500) == []
