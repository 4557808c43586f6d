"""The only door to the queue: one delivery of the plan that was approved, whatever posts there are."""

import asyncio
import itertools
import json
from datetime import timedelta

from db.support.builders import permanent, sent
from db.support.publications import Publisher


async def test_a_command_repeated_at_once_and_later_makes_one_delivery(tenant):
    publisher = await Publisher.create(tenant)
    publication = await publisher.scheduled()
    await publisher.due()

    verdicts = await asyncio.gather(*(publisher.begin(publication, 2) for _ in range(50)))

    assert sorted(verdicts) == ["already"] * 49 + ["begun"]
    await tenant.drain()
    assert await publisher.begin(publication, 2) == "already"
    assert await tenant.count("deliveries") == 1


async def test_a_publication_goes_out_although_the_channel_has_the_content(tenant):
    publisher = await Publisher.create(tenant)
    await tenant.enqueue("Sale!")
    await tenant.drain()

    publication = await publisher.begun("Sale!")
    await tenant.drain()

    assert await publisher.status(publication) == "published"
    assert (await tenant.enqueue("Sale!"))["deduped"] == 1  # but an ordinary post of it does not


async def test_another_plan_than_the_approved_one_pauses(tenant):
    publisher = await Publisher.create(tenant)
    publication = await publisher.scheduled(owner="mailto:ann@example.com")
    await publisher.due()
    await tenant.set_channel(publisher.channel, 'settings = \'{"parse_mode": "HTML"}\'')

    assert await publisher.begin(publication) == "plan_changed"

    shown = await publisher.show(publication)
    assert (shown["status"], shown["pause_code"], shown["delivery_id"]) == ("paused", "plan_changed", None)
    assert await tenant.count("publication_notices") == 1


async def test_a_disabled_channel_pauses_and_a_paused_one_waits(tenant):
    publisher = await Publisher.create(tenant)
    disabled = await publisher.scheduled()
    await publisher.due()
    await tenant.set_channel(publisher.channel, "enabled = false")
    assert await publisher.begin(disabled) == "channel_disabled"
    assert await publisher.status(disabled) == "paused"

    other = await Publisher.create(tenant)
    await tenant.set_channel(other.channel, "paused_until = clock_timestamp() + interval '1 hour'")
    waiting = await other.begun("waits")
    assert await tenant.claim() == []
    assert await other.status(waiting) == "publishing"


async def test_content_that_no_plan_can_show_any_more_fails(tenant):
    publisher = await Publisher.create(tenant)
    publication = await publisher.scheduled()
    await publisher.due()
    post = await publisher.post(publication)
    [compiled] = post["renderings"]
    post["renderings"] = [{"profile_hash": compiled["profile_hash"], "problems": [{"code": "text_too_long"}]}]

    answer = await publisher.call("begin_publication", publication, 2, json.dumps(post))

    assert answer["verdict"] == "content"
    shown = await publisher.show(publication)
    assert (shown["status"], shown["last_error"]["error_type"]) == ("failed", "content")


async def test_the_same_content_after_a_failure_comes_back_as_the_same_delivery(tenant):
    publisher = await Publisher.create(tenant)
    publication = await publisher.begun()
    first = await publisher.delivery(publication)
    await tenant.commit(permanent(await tenant.claim_one(), code="message_too_long"))
    version = await publisher.version(publication)
    await publisher.call("edit_publication", publication, version, json.dumps({"owner": "ann"}), "ann")
    await publisher.approve(publication)
    await publisher.schedule(publication)
    await publisher.due()

    assert await publisher.begin(publication) == "begun"

    assert await publisher.delivery(publication) == first
    await tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    await tenant.commit(sent(await tenant.claim_one()))
    assert await publisher.status(publication) == "published"


async def test_the_delivery_of_a_publication_that_was_edited_cannot_come_back(tenant, operator):
    publisher = await Publisher.create(tenant)
    publication = await publisher.begun()
    delivery = await publisher.delivery(publication)
    await tenant.commit(permanent(await tenant.claim_one(), code="message_too_long"))
    version = await publisher.version(publication)
    await publisher.call(
        "edit_publication", publication, version, json.dumps({"creative_draft": {"text": "Shorter"}}), "ann"
    )

    assert (await operator.requeue(delivery))[delivery]["verdict"] == "publication_changed"


async def test_three_seconds_lie_between_the_publications_of_a_channel(tenant):
    publisher = await Publisher.create(tenant, rate_rps=1000)
    for nth in range(3):
        await publisher.begun(f"ad {nth}")
    await tenant.enqueue("an ordinary post")
    start = await tenant.db.fetchval("SELECT clock_timestamp()")
    slots = []

    for tenth in range(70):
        for claim in await tenant.claim(now=start + timedelta(seconds=tenth / 10)):
            slots.append(claim["slot_at"])
            await tenant.commit(sent(claim))

    gaps = [later - earlier for earlier, later in itertools.pairwise(slots)]
    assert len(slots) == 3
    assert all(gap >= timedelta(seconds=3.1) for gap in gaps)


async def test_posts_before_a_publication_go_with_it_in_one_claim(tenant):
    publisher = await Publisher.create(tenant, rate_rps=None)
    for nth in range(2):
        await tenant.enqueue(f"post {nth}")
    await publisher.begun("ad")
    await tenant.enqueue("after the ad")

    assert len(await tenant.claim()) == 3
    assert await tenant.claim() == []


async def test_the_next_part_of_a_publication_waits_for_the_channels_rate_alone(tenant):
    publisher = await Publisher.create(tenant, rate_rps=10, max_parallel=1)
    await publisher.begun(calls=2)
    claim = await tenant.claim_one()

    slot = await tenant.db.fetchrow(
        "SELECT * FROM take_slot($1, $2, $3, p_now => $4)",
        *(tenant.workspace, claim["delivery_id"], claim["claim_token"], claim["slot_at"] + timedelta(seconds=0.2)),
    )

    assert slot["taken"]
    assert slot["slot_at"] - claim["slot_at"] == timedelta(seconds=0.2)
    gate = (await tenant.state(publisher.channel))["next_allowed_at"]
    assert gate - slot["slot_at"] == timedelta(seconds=3.1)
