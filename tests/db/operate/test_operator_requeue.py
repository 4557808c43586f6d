"""Bringing back what was given up: with a new budget, with a name to it, and never beside its own twin."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import NEVER, Tenant, is_waiting, permanent, running, sent, transient
from db.support.operators import BY_HAND, Operator, dead, meta, refused
from harness.eventually import eventually


async def given_up(tenant: Tenant, text: str):
    """One channel's delivery of this content, dead."""
    await tenant.enqueue(text, max_attempts=1)
    claim = await tenant.claim_one()
    await tenant.commit(transient(claim))
    return claim["delivery_id"]


async def test_what_was_dead_is_due_at_once_with_a_new_budget(tenant, operator):
    [delivery] = await dead(tenant, await tenant.channel())

    answer = (await operator.requeue(delivery))[delivery]

    row = await tenant.delivery(delivery)
    event = (await tenant.events())[-1]
    assert (answer["verdict"], answer["status"], answer["attempt"], answer["max_attempts"]) == (
        "requeued",
        "retry",
        1,
        6,
    )
    assert (row["status"], row["attempt"], row["max_attempts"], row["event_count"]) == ("retry", 1, 6, 3)
    assert (event["what"], event["attempt"], event["ended"]) == ("manual_requeue", 1, "ok")
    assert meta(event) == {**BY_HAND, "from_status": "dead", "max_attempts": 6}
    assert (await tenant.claim_one())["attempt"] == 2


async def test_the_operator_chooses_the_budget(tenant, operator):
    [delivery] = await dead(tenant, await tenant.channel())

    await operator.requeue(delivery, attempts=1)
    await tenant.commit(transient(await tenant.claim_one()))

    row = await tenant.delivery(delivery)
    assert (row["status"], row["attempt"], row["max_attempts"]) == ("dead", 2, 2)


async def test_what_was_refused_by_the_provider_comes_back(tenant, operator):
    delivery = await refused(tenant, await tenant.channel())

    assert await operator.requeue_one(delivery) == "requeued"
    assert meta((await tenant.events())[-1])["from_status"] == "failed_permanent"


async def test_what_is_not_given_up_or_not_there_is_left_alone(tenant, operator):
    [queued] = await tenant.backlog(await tenant.channel(), 1)
    nobody = uuid4()

    answers = await operator.requeue(queued, nobody, queued)

    assert {key: (row["verdict"], row["status"]) for key, row in answers.items()} == {
        queued: ("not_given_up", "queued"),
        nobody: ("not_found", None),
    }
    assert await tenant.events("manual_requeue") == []


async def test_another_workspaces_delivery_is_not_found(tenant, operator, database):
    other = await Tenant.create(database.pool)
    [delivery] = await dead(other, await other.channel())

    assert await operator.requeue_one(delivery) == "not_found"
    assert (await other.delivery(delivery))["status"] == "dead"


async def test_what_no_plan_could_express_has_nothing_to_send(tenant, operator):
    await tenant.channel()
    post = await tenant.post()
    post["renderings"][0] |= {"plan_hash": None, "problems": [{"code": "too_long"}]}
    await tenant.put(post)
    delivery = (await tenant.only_delivery())["delivery_id"]

    assert await operator.requeue_one(delivery) == "nothing_to_send"
    assert await operator.requeue_one(delivery, force=True) == "nothing_to_send"


async def test_what_failed_with_its_channel_waits_until_the_channel_is_enabled(tenant, operator):
    channel = await tenant.channel()
    delivery = await refused(tenant, channel, scope="channel")
    await operator.disable(channel)

    assert await operator.requeue_one(delivery) == "channel_disabled"
    assert await operator.requeue_one(delivery, force=True) == "channel_disabled"

    await operator.enable(channel)

    assert await operator.requeue_one(delivery) == "requeued"
    assert (await tenant.claim_one())["delivery_id"] == delivery


async def test_what_failed_for_its_own_reasons_may_wait_in_a_disabled_channel(tenant, operator):
    channel = await tenant.channel()
    delivery = await refused(tenant, channel)
    await operator.disable(channel)

    answer = (await operator.requeue(delivery))[delivery]

    assert (answer["verdict"], answer["opens_at"]) == ("requeued", NEVER)


async def test_a_paused_channel_takes_it_and_says_until_when_it_waits(tenant, operator):
    channel = await tenant.channel()
    delivery = await refused(tenant, channel, scope="channel")

    answer = (await operator.requeue(delivery))[delivery]

    assert answer["verdict"] == "requeued"
    assert answer["opens_at"] == (await tenant.state(channel))["paused_until"]
    assert await tenant.claim() == []


async def test_a_twin_in_flight_or_inside_its_window_stands_in_the_way_unless_forced(tenant, operator):
    await tenant.channel()
    delivery = await given_up(tenant, "same")
    await tenant.enqueue("same")
    twin = next(row for row in await tenant.deliveries() if row["status"] == "queued")["delivery_id"]

    waiting = (await operator.requeue(delivery))[delivery]
    await tenant.commit(sent(await tenant.claim_one()))
    arrived = (await operator.requeue(delivery))[delivery]

    assert (waiting["verdict"], waiting["twin_id"]) == ("twin_in_flight", twin)
    assert (arrived["verdict"], arrived["twin_id"]) == ("twin_sent", twin)
    assert await operator.requeue_one(delivery, force=True) == "requeued"
    assert meta((await tenant.events())[-1])["forced"] is True


async def test_a_twin_whose_window_has_passed_is_no_twin(tenant, operator):
    await tenant.channel(dedup_ttl_hours=1)
    delivery = await given_up(tenant, "same")
    await tenant.enqueue("same")
    await tenant.commit(sent(await tenant.claim_one()))
    twin = next(row for row in await tenant.deliveries() if row["status"] == "sent")["delivery_id"]
    await tenant.set_delivery(twin, "sent_at = now() - interval '61 minutes'")

    assert await operator.requeue_one(delivery) == "requeued"


async def test_the_same_content_in_another_channel_is_no_twin(tenant, operator):
    await tenant.channels(2)
    await tenant.enqueue("same", max_attempts=1)
    one, other = await tenant.claim()
    await tenant.commit(transient(one), sent(other))

    assert await operator.requeue_one(one["delivery_id"]) == "requeued"


async def test_of_two_twins_asked_for_together_the_newer_comes_back(tenant, operator):
    await tenant.channel()
    older = await given_up(tenant, "same")
    newer = await given_up(tenant, "same")

    answers = await operator.requeue(older, newer)

    assert {key: row["verdict"] for key, row in answers.items()} == {older: "twin_in_flight", newer: "requeued"}
    assert answers[older]["twin_id"] == newer
    assert len(await tenant.claim()) == 1


async def test_a_dry_run_says_the_same_and_changes_nothing(tenant, operator):
    [delivery] = await dead(tenant, await tenant.channel())
    before = await tenant.delivery(delivery), await tenant.events()

    assert await operator.requeue_one(delivery, dry_run=True) == "requeued"

    assert (await tenant.delivery(delivery), await tenant.events()) == before
    assert await tenant.claim() == []


async def test_a_post_of_the_same_content_waits_for_the_requeue_and_finds_it(database, tenant, operator):
    await tenant.channel()
    delivery = await given_up(tenant, "same")
    post = await tenant.post("same")
    holder, waiter = await database.connect(), await database.connect()

    async with holder.transaction():
        assert await Operator(tenant.on(holder)).requeue_one(delivery) == "requeued"
        twin = running(tenant.on(waiter).put(post))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))

    assert (await twin)["deduped"] == 1


async def test_a_requeue_waits_for_a_post_of_the_same_content_and_finds_it(database, tenant):
    await tenant.channel()
    delivery = await given_up(tenant, "same")
    holder, waiter = await database.connect(), await database.connect()

    async with holder.transaction():
        await tenant.on(holder).enqueue("same")
        requeue = running(Operator(tenant.on(waiter)).requeue_one(delivery))
        await eventually(lambda: is_waiting(tenant.db, waiter.get_server_pid()))

    assert await requeue == "twin_in_flight"


async def test_posts_and_requeues_of_one_content_leave_one_in_flight(tenant, operator):
    await tenant.channel()
    deliveries = [await given_up(tenant, "same") for _ in range(3)]
    post = await tenant.post("same")

    for _ in range(10):
        work = [tenant.put({**post, "run_id": str(uuid4())}) for _ in range(4)]
        work += [operator.requeue_one(delivery) for delivery in deliveries]
        await asyncio.gather(*work)
        [claim] = await tenant.claim()
        await tenant.commit(permanent(claim))
        deliveries = [row["delivery_id"] for row in await tenant.deliveries()]


async def test_many_unsorted_requeues_and_batches_do_not_deadlock(tenant, operator):
    await tenant.channels(2)
    posts = [await tenant.post(f"post {n}", max_attempts=1) for n in range(12)]
    await tenant.put_batch(posts)
    await tenant.commit(*(transient(claim) for claim in await tenant.claim()))
    deliveries = [row["delivery_id"] for row in await tenant.deliveries()]

    for turn in range(1, 6):
        work = [operator.requeue(*deliveries[::step]) for step in (1, -1, 2, -3)]
        work += [tenant.put_batch(posts[::-1]), tenant.put_batch(posts[turn:] + posts[:turn])]
        await asyncio.gather(*work)
        await tenant.commit(*(permanent(claim) for claim in await tenant.claim()))


async def test_a_filter_counts_before_it_moves(tenant, operator):
    channel, other = await tenant.channels(2)
    lost = await dead(tenant, channel, 2)
    wrong = await refused(tenant, channel)
    elsewhere = await refused(tenant, other)

    assert set(await operator.requeue_matching()) == {*lost, wrong, elsewhere}
    assert set(await operator.requeue_matching(status="dead")) == set(lost)
    assert set(await operator.requeue_matching(channel_id=other)) == {elsewhere}
    assert set(await operator.requeue_matching(code="boom", status="failed_permanent")) == {wrong, elsewhere}
    assert await operator.requeue_matching(code="other") == {}
    assert await operator.requeue_matching(until=datetime.now(UTC) - timedelta(minutes=1)) == {}
    message = (await tenant.delivery(wrong))["message_id"]
    assert set(await operator.requeue_matching(message_id=message)) == {wrong}
    assert len(await operator.requeue_matching(limit=3)) == 4, "a count is of all"
    assert await tenant.events("manual_requeue") == []

    moved = await operator.requeue_matching(status="dead", dry_run=False)

    assert moved == dict.fromkeys(lost, "requeued")
    assert {claim["delivery_id"] for claim in await tenant.claim()} == set(lost)


async def test_what_is_refused_takes_no_place_from_what_comes_back(tenant, operator):
    gone, channel = await tenant.channels(2)
    stuck = await tenant.backlog(gone, 5)
    await tenant.commit(*(permanent(claim, "channel") for claim in await tenant.claim()))
    await operator.disable(gone)
    good = await dead(tenant, channel, 3)

    turns = [await operator.requeue_matching(dry_run=False, limit=2) for _ in range(3)]

    refusals = dict.fromkeys(stuck, "channel_disabled")
    assert turns[0] == refusals | dict.fromkeys(good[:2], "requeued")
    assert turns[1] == refusals | {good[2]: "requeued"}
    assert turns[2] == refusals
    assert len(await tenant.events("manual_requeue")) == len(good)


async def test_of_twins_on_both_sides_of_a_page_one_comes_back(tenant, operator):
    await tenant.channel()
    twins = {await given_up(tenant, "same"), await given_up(tenant, "same")}

    await operator.requeue_matching(dry_run=False, limit=1)
    again = await operator.requeue_matching(dry_run=False, limit=1)

    assert again.keys() < twins
    assert set(again.values()) == {"twin_in_flight"}
    assert len(await tenant.claim()) == 1


async def test_a_filter_leaves_out_what_was_skipped_or_dropped_on_purpose(tenant, operator):
    channel = await tenant.channel(catch_up={"policy": "newest", "keep": 0})
    [skipped] = await dead(tenant, channel)
    await operator.skip(skipped)
    await operator.pause(channel)
    [dropped] = await tenant.backlog(channel, 1)
    await operator.resume(channel)

    assert await operator.requeue_matching() == {}
    assert await operator.requeue_matching(code="catch_up_dropped") == {dropped: "requeued"}


@pytest.mark.parametrize("signature", [("", "why"), ("ann", " "), (None, "why"), ("ann", None)])
async def test_nobody_requeues_without_name_and_reason(tenant, operator, signature):
    [delivery] = await dead(tenant, await tenant.channel())

    with pytest.raises(asyncpg.PostgresError) as raised:
        await operator.rows("requeue", [delivery], *signature)

    assert raised.value.sqlstate == "AP010"


@pytest.mark.parametrize(
    ("function", "named"),
    [("requeue", {"attempts": 0}), ("requeue_matching", {"status": "sent"}), ("requeue_matching", {"limit": 0})],
)
async def test_nonsense_is_raised(operator, function, named):
    given = ([],) if function == "requeue" else ()

    with pytest.raises(asyncpg.PostgresError) as raised:
        await operator.rows(function, *given, "ann", "because", **named)

    assert raised.value.sqlstate == "AP011"
