"""What has ended says how, when and why, and whether it can be brought back."""

from datetime import datetime
from typing import Any
from uuid import UUID

from db.support.builders import Tenant, sent
from db.support.operators import Operator, dead, refused
from db.support.why_answers import ask_one


async def ended(tenant: Tenant, delivery: UUID) -> dict[str, Any]:
    told = await ask_one(tenant, delivery)
    assert told["gate"] is None
    found: dict[str, Any] = told["ended"]
    return found


async def test_a_sent_delivery_says_where_when_and_under_which_ids_part_by_part(tenant: Tenant) -> None:
    channel = await tenant.channel(target_id="-100", title="News")
    [delivery] = await tenant.backlog(channel, 1, calls=2)
    claim = await tenant.claim_one()
    for part, ids in enumerate((["17"], ["18", "19"])):
        query = "SELECT record_progress($1, $2, $3, $4, $5)"
        await tenant.db.execute(query, tenant.workspace, delivery, claim["claim_token"], part, ids)
    await tenant.commit(sent(claim, provider_message_id="17", parts=[["17"], ["18", "19"]]))

    told = await ended(tenant, delivery)

    assert (told["outcome"], datetime.fromisoformat(told["at"])) == (
        "sent",
        (await tenant.delivery(delivery))["sent_at"],
    )
    assert told["detail"] == {
        "platform": "telegram",
        "target_id": "-100",
        "provider_message_id": "17",
        "parts": [{"part": 0, "ids": ["17"]}, {"part": 1, "ids": ["18", "19"]}],
    }


async def test_an_album_of_one_call_has_all_its_ids_and_a_text_its_one(tenant: Tenant) -> None:
    channel = await tenant.channel()
    album, text = await tenant.backlog(channel, 2)
    first, second = await tenant.claim()
    await tenant.commit(sent(first, parts=[["17", "18"]]), sent(second))

    told = [(await ended(tenant, delivery))["detail"]["parts"] for delivery in (album, text)]

    assert told == [[{"part": 0, "ids": ["17", "18"]}], [{"part": 0, "ids": ["17"]}]]


async def test_what_no_plan_could_express_says_every_problem(tenant: Tenant) -> None:
    await tenant.channel()
    post = await tenant.post("hello")
    problems = [{"field": "text", "reason": "5000 characters, 4096 at most"}]
    for rendering in post["renderings"]:
        rendering |= {"plan_hash": None, "problems": problems}
    await tenant.put(post)

    told = await ended(tenant, (await tenant.only_delivery())["delivery_id"])

    assert (told["outcome"], told["command"]) == ("preflight", None)
    assert told["detail"] == {"problems": problems, "requeue": "nothing_to_send"}


async def test_of_many_problems_it_says_how_many_are_not_kept(tenant: Tenant) -> None:
    await tenant.channel()
    post = await tenant.post("hello")
    for rendering in post["renderings"]:
        rendering |= {"plan_hash": None, "problems": [{"field": "buttons", "message": "x"}] * 9}
    await tenant.put(post)

    told = await ended(tenant, (await tenant.only_delivery())["delivery_id"])

    assert (len(told["detail"]["problems"]), told["detail"]["more_problems"]) == (5, 4)


async def test_what_a_platform_refused_and_what_died_can_be_brought_back_by_the_command_that_is_named(
    tenant: Tenant, operator: Operator
) -> None:
    channel = await tenant.channel()
    no = await refused(tenant, channel)
    [gone] = await dead(tenant, channel)

    told = {delivery: await ended(tenant, delivery) for delivery in (no, gone)}

    assert [told[delivery]["outcome"] for delivery in (no, gone)] == ["refused", "dead"]
    assert told[no]["detail"] == {"code": "boom", "scope": "delivery"}
    for delivery, one in told.items():
        signed = f"--workspace {tenant.workspace} --reason '…'"
        assert one["command"] == f"autopost queue requeue {delivery} {signed}"
        assert await operator.requeue_one(delivery) == "requeued"


async def test_a_skipped_one_says_who_left_it_so_and_why(tenant: Tenant, operator: Operator) -> None:
    [gone] = await dead(tenant, await tenant.channel())
    await operator.skip(gone)

    told = await ended(tenant, gone)

    assert told["outcome"] == "skipped"
    assert (told["detail"]["operator"], told["detail"]["reason"]) == ("ann", "because")


async def test_a_catch_up_drop_says_who_opened_the_channel_and_by_which_policy(
    tenant: Tenant, operator: Operator
) -> None:
    policy = {"policy": "newest", "keep": 0}
    channel = await tenant.channel(catch_up=policy)
    [delivery] = await tenant.backlog(channel, 1)
    await operator.pause(channel)
    await operator.resume(channel)

    told = await ended(tenant, delivery)

    assert told["outcome"] == "catch_up_dropped"
    assert told["detail"] | {"requeue": None} == {
        "catch_up": policy,
        "operator": "ann",
        "reason": "because",
        "requeue": None,
    }


async def test_a_twin_is_named_with_where_it_is(tenant: Tenant) -> None:
    await tenant.channel(enabled=True)
    await tenant.enqueue("hello")
    await tenant.enqueue("hello", audit_deduped=True)
    twin, copy = await tenant.deliveries()

    told = await ended(tenant, copy["delivery_id"])

    assert told["outcome"] == "deduped"
    assert told["detail"]["twin"] == {"delivery_id": str(twin["delivery_id"]), "status": "queued"}
    assert told["twin_gate"]["gate"] == "queued_behind"
