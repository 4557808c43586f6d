"""The life of a publication: which moves are legal, what each leaves in the log, what changes its version."""

import json
from datetime import timedelta
from itertools import product
from uuid import uuid4

import asyncpg
import pytest
from db.support.builders import Tenant, sent
from db.support.publications import SECOND, Publisher, now

STATUSES = ("draft", "approved", "scheduled", "publishing", "published", "paused", "failed", "cancelled")
LEGAL = {
    "draft": {"approved", "cancelled"},
    "approved": {"scheduled", "draft", "cancelled"},
    "scheduled": {"publishing", "approved", "draft", "paused", "cancelled"},
    "publishing": {"published", "failed", "paused", "scheduled", "approved", "cancelled"},
    "paused": {"publishing", "published", "scheduled", "draft", "failed", "cancelled"},
    "failed": {"publishing", "draft", "cancelled"},
    "published": set(),
    "cancelled": set(),
}


@pytest.fixture
async def publisher(tenant: Tenant) -> Publisher:
    return await Publisher.create(tenant)


@pytest.mark.parametrize(("before", "after"), [pair for pair in product(STATUSES, STATUSES) if pair[0] != pair[1]])
async def test_the_database_knows_the_legal_moves(database, before, after):
    assert await database.pool.fetchval("SELECT is_legal_publication_move($1, $2)", before, after) == (
        after in LEGAL[before]
    )


async def test_any_other_move_is_refused_whoever_writes(publisher):
    publication = await publisher.draft()

    with pytest.raises(asyncpg.PostgresError) as refused:
        await publisher.tenant.db.execute(
            "UPDATE publications SET status = 'published', published_at = now() WHERE publication_id = $1",
            publication,
        )

    assert refused.value.sqlstate == "AP015"
    assert "a publication that is draft cannot become published" in str(refused.value)


async def test_a_publication_goes_from_draft_to_published_and_the_log_says_so(publisher):
    publication = await publisher.begun()
    claim = await publisher.tenant.claim_one()
    await publisher.tenant.commit(sent(claim))

    shown = await publisher.show(publication)
    assert (shown["status"], shown["published_message_id"]) == ("published", "17")
    assert shown["published_at"] is not None
    assert await publisher.told() == ["drafted", "approved", "scheduled", "due", "published"]
    assert await publisher.tenant.history(claim["delivery_id"]) == ["enqueue", "send_attempt", "sent"]
    events = [json.loads(row["meta"]) for row in await publisher.tenant.events("publication_approved")]
    assert events[0]["plan_hash"] == shown["approved_plan_hash"]
    assert events[0]["operator"] == "bob"


async def test_an_edit_takes_the_approval_away_and_raises_the_version(publisher):
    publication = await publisher.scheduled()
    before = await publisher.version(publication)

    answer = await publisher.call(
        "edit_publication", publication, before, json.dumps({"creative_draft": {"text": "Sale, 20 %"}}), "ann"
    )

    shown = answer["publication"]
    assert (answer["verdict"], shown["status"], shown["version"]) == ("edited", "draft", before + 1)
    assert (shown["approved_by"], shown["approved_plan_hash"], shown["scheduled_at"]) == (None, None, None)
    assert (await publisher.schedule(publication))["verdict"] == "not_approved"


async def test_a_change_with_another_version_is_refused_and_shows_the_current_one(publisher):
    publication = await publisher.scheduled()

    answer = await publisher.call("schedule_publication", publication, 1, now(), None, "bob")

    assert (answer["verdict"], answer["publication"]["version"]) == ("stale", 2)
    assert (await publisher.call("schedule_publication", uuid4(), 1, now(), None, "bob"))["verdict"] == "not_found"


async def test_a_time_that_has_passed_is_refused(publisher):
    publication = await publisher.draft()
    await publisher.approve(publication)

    assert (await publisher.schedule(publication, now() - 2 * timedelta(minutes=1)))["verdict"] == "in_past"
    assert (await publisher.schedule(publication, now() - 30 * SECOND))["verdict"] == "scheduled"


async def test_a_closed_window_is_refused_and_the_answer_says_when_it_opens(tenant):
    opens = {key: [["10:00", "11:00"]] for key in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")}
    publisher = await Publisher.create(tenant, window_mode="windowed", timezone="UTC", posting_window=opens)
    publication = await publisher.draft()
    await publisher.approve(publication)
    tomorrow = (now() + timedelta(days=1)).replace(minute=0, second=0, microsecond=0)

    refused = await publisher.schedule(publication, tomorrow.replace(hour=9))
    assert (refused["verdict"], refused["opens_at"][11:16]) == ("outside_window", "10:00")
    assert (await publisher.schedule(publication, tomorrow.replace(hour=10)))["verdict"] == "scheduled"


async def test_a_disabled_channel_is_refused(publisher):
    publication = await publisher.draft()
    await publisher.approve(publication)
    await publisher.tenant.set_channel(publisher.channel, "enabled = false")

    assert (await publisher.schedule(publication))["verdict"] == "channel_disabled"


async def test_a_schedule_warns_of_a_neighbour_and_of_the_same_content(publisher):
    await publisher.tenant.enqueue("Sale!")
    await publisher.tenant.drain()
    neighbour = await publisher.scheduled("Another", at=now() + timedelta(hours=1))
    publication = await publisher.draft("Sale!")
    await publisher.approve(publication)

    answer = await publisher.schedule(publication, now() + timedelta(hours=1, minutes=4))

    assert [(one["code"], one.get("publication_id")) for one in answer["warnings"]] == [
        ("close_to_another", str(neighbour)),
        ("same_content", None),
    ]


async def test_an_unscheduled_publication_stays_approved_and_its_command_is_void(publisher):
    publication = await publisher.scheduled()
    await publisher.due()
    version = await publisher.version(publication)

    answer = await publisher.call("unschedule_publication", publication, version, "bob")

    assert (answer["verdict"], answer["publication"]["status"]) == ("unscheduled", "approved")
    assert await publisher.begin(publication, version) == "stale"


async def test_publications_are_listed_by_time_page_by_page(publisher):
    later = await publisher.scheduled("later", at=now() + timedelta(hours=2))
    sooner = await publisher.scheduled("sooner", at=now() + timedelta(hours=1))
    draft = await publisher.draft("some day")

    async def listed(*arguments):
        return [row["publication_id"] for row in await publisher.call("list_publications", *arguments)]

    assert await listed(None, None, None, None, None, 2) == [str(sooner), str(later)]
    assert await listed(None, None, None, None, later, 2) == [str(draft)]
    assert await listed(now() + timedelta(minutes=90), None, None, None, None, 9) == [str(later)]
    assert await listed(None, None, ["draft"], None, None, 9) == [str(draft)]


async def test_a_channel_of_another_workspace_is_unknown(publisher):
    other = await Publisher.create(await Tenant.create(publisher.tenant.db))

    answer = await other.call(
        "draft_publication",
        json.dumps({"channel_id": str(publisher.channel), "creative_draft": {}, "media_type": "text"}),
        "ann",
    )

    assert answer == {"verdict": "unknown_channel"}
