"""A publication that failed or was missed, was changed and scheduled again, goes out as it was approved last."""

import json
from typing import Any
from uuid import UUID

import pytest
from db.support.builders import permanent, sent
from db.support.publications import Publisher


@pytest.fixture
async def publisher(tenant) -> Publisher:
    return await Publisher.create(tenant)


async def refused(publisher: Publisher, scope: str = "delivery", code: str = "message_too_long") -> UUID:
    publication = await publisher.begun()
    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), scope, code=code))
    return publication


async def again(publisher: Publisher, publication: UUID, **edit: Any) -> Any:
    """The delivery with which it begins."""
    arguments = (publication, await publisher.version(publication), json.dumps(edit or {"owner": "ann"}), "ann")
    assert (await publisher.call("edit_publication", *arguments))["verdict"] == "edited"
    assert await publisher.approve(publication) == "approved"
    assert (await publisher.schedule(publication))["verdict"] == "scheduled"
    await publisher.due()
    assert await publisher.begin(publication) == "begun"
    return await publisher.tenant.delivery(await publisher.delivery(publication))


async def test_in_another_channel_it_has_another_delivery(publisher):
    publication = await refused(publisher)
    other = await publisher.tenant.channel()

    delivery = await again(publisher, publication, channel_id=str(other))

    assert (delivery["channel_id"], delivery["status"]) == (other, "queued")


async def test_the_channel_that_it_left_does_not_hold_it(publisher):
    publication = await refused(publisher, "channel", "bot_kicked")
    await publisher.tenant.set_channel(publisher.channel, "enabled = false")
    other = await publisher.tenant.channel()

    delivery = await again(publisher, publication, channel_id=str(other))

    assert (delivery["channel_id"], delivery["status"]) == (other, "queued")
    assert await publisher.status(publication) == "publishing"


async def test_in_the_same_channel_the_plan_that_was_approved_last_goes_out(publisher):
    tenant = publisher.tenant
    publication = await refused(publisher)
    await tenant.set_channel(publisher.channel, 'settings = \'{"parse_mode": "HTML"}\'')

    delivery = await again(publisher, publication)

    query = "SELECT plan_hash FROM renderings WHERE rendering_id = $1"
    plan = await tenant.db.fetchval(query, delivery["rendering_id"])
    assert plan == delivery["plan_hash"] == (await publisher.show(publication))["approved_plan_hash"]
    await tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    await tenant.commit(sent(await tenant.claim_one()))
    assert await publisher.status(publication) == "published"


async def test_what_was_missed_behind_its_channel_is_scheduled_again(publisher):
    tenant = publisher.tenant
    publication = await publisher.begun(late_after="1 hour")
    await tenant.db.execute("UPDATE publications SET scheduled_at = clock_timestamp() - interval '2 hours'")
    assert await tenant.db.fetchval("SELECT drop_missed_publications(10)") == 1
    assert (await publisher.show(publication))["pause_code"] == "missed"

    assert (await publisher.schedule(publication))["verdict"] == "scheduled"

    await publisher.due()
    assert await publisher.begin(publication) == "begun"
    await tenant.commit(sent(await tenant.claim_one()))
    assert await publisher.status(publication) == "published"
