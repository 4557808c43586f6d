"""Why a publication is not out: by its id, or by those of its delivery and its message."""

import json
from datetime import timedelta

import pytest
from autopost_cli.why.text import lines
from db.support.builders import Tenant, permanent, sent, transient
from db.support.publications import Publisher, now
from db.support.why_answers import ask, ask_one

OWNER = "mailto:ann@shop.example"


@pytest.fixture
async def publisher(tenant) -> Publisher:
    return await Publisher.create(tenant, title="News")


async def say(publisher, publication) -> str:
    answer = await publisher.tenant.db.fetchval("SELECT why($1)", str(publication))
    return "\n".join(lines(json.loads(answer)))


async def shown(publisher, publication):
    return (await ask(publisher.tenant, publication))[0]


async def test_a_draft_and_what_is_approved_wait_for_a_person(publisher):
    publication = await publisher.draft()
    draft = (await ask_one(publisher.tenant, publication))["gate"]
    await publisher.approve(publication)
    approved = (await ask_one(publisher.tenant, publication))["gate"]

    assert [(one["gate"], one["released_by"]) for one in (draft, approved)] == [
        ("not_approved", "operator"),
        ("not_scheduled", "operator"),
    ]
    assert draft["command"] == f"autopost publication approve {publication}"


async def test_one_that_is_scheduled_waits_for_its_time(publisher):
    at = now() + timedelta(hours=2)
    publication = await publisher.scheduled(at=at)

    gate = (await ask_one(publisher.tenant, publication))["gate"]

    assert (gate["gate"], gate["released_by"]) == ("schedule", "time")
    assert "in 1 h 59 min" in await say(publisher, publication)


async def test_one_that_is_due_waits_for_ingest_or_for_its_workspace(publisher):
    publication = await publisher.scheduled()
    due = (await ask_one(publisher.tenant, publication))["gate"]
    await publisher.tenant.db.execute("UPDATE workspaces SET status = 'paused', status_since = clock_timestamp()")
    held = (await ask_one(publisher.tenant, publication))["gate"]

    assert (due["gate"], due["released_by"]) == ("due", "ingest")
    assert (held["gate"], "autopost workspace resume" in held["command"]) == ("workspace_paused", True)


async def test_its_delivery_its_message_and_itself_tell_the_same_story(publisher):
    publication = await publisher.begun()
    delivery = await publisher.delivery(publication)
    message = await publisher.tenant.db.fetchval("SELECT message_id FROM deliveries WHERE delivery_id = $1", delivery)

    kinds = {
        asked: [(one["kind"], one.get("publication_id")) for one in await ask(publisher.tenant, asked)]
        for asked in (publication, delivery, message)
    }

    its = ("publication", str(publication))
    assert kinds == {
        publication: [its, ("delivery", None)],
        delivery: [its, ("delivery", None)],
        message: [its, ("delivery", None), ("message", None)],
    }
    assert (await shown(publisher, publication))["gate"] is None
    assert "see below" in await say(publisher, publication)


async def test_a_delivery_that_an_edit_left_behind_still_leads_to_it(publisher):
    publication = await publisher.begun()
    delivery = await publisher.delivery(publication)
    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), code="message_too_long"))
    await publisher.call("edit_publication", publication, 2, json.dumps({"creative_draft": {"text": "new"}}), "ann")

    assert (await shown(publisher, delivery))["publication_id"] == str(publication)


@pytest.mark.parametrize(
    ("outcome", "gate", "command"),
    [
        (lambda claim: transient(claim, ambiguous=True), "unconfirmed", "autopost publication resolve"),
        (lambda claim: permanent(claim, code="media_missing_origin"), "file_id_expired", "autopost publication edit"),
    ],
)
async def test_a_pause_names_its_reason_and_the_command_that_ends_it(publisher, outcome, gate, command):
    publication = await publisher.begun()
    await publisher.tenant.commit(outcome(await publisher.tenant.claim_one()))

    told = (await shown(publisher, publication))["gate"]

    assert (told["gate"], told["released_by"]) == (gate, "operator")
    assert told["command"].startswith(command)
    assert f"held by     {gate}" in await say(publisher, publication)


async def test_a_failure_names_the_error_the_retry_and_who_was_told(publisher):
    publication = await publisher.begun(owner=OWNER)
    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), code="message_too_long", message="oh"))

    told = await shown(publisher, publication)

    assert told["ended"]["outcome"] == "failed"
    assert (told["ended"]["detail"]["code"], told["ended"]["detail"]["error_type"]) == ("message_too_long", "content")
    assert told["ended"]["command"].startswith("autopost publication retry")
    [notice] = told["notices"]
    assert (notice["code"], notice["target"], notice["attempts"]) == ("content", "smtp", 0)
    said = await say(publisher, publication)
    assert "content by smtp: not told yet, 0 tries" in said
    assert "ann@shop.example" not in said


async def test_what_is_published_says_where_and_its_history_says_who(publisher):
    publication = await publisher.begun()
    await publisher.tenant.commit(sent(await publisher.tenant.claim_one()))

    told = await shown(publisher, publication)

    assert told["ended"]["detail"] == {"provider_message_id": "17"}
    history = [(event["action"].removeprefix("publication_"), event.get("operator")) for event in told["history"]]
    assert history == [
        ("drafted", "ann"),
        ("approved", "bob"),
        ("scheduled", "bob"),
        ("due", None),
        ("published", None),
    ]
    assert "where       provider_message_id: 17" in await say(publisher, publication)


async def test_a_cancelled_one_says_who_and_why(publisher):
    publication = await publisher.scheduled()
    await publisher.cancel(publication)

    ended = (await ask_one(publisher.tenant, publication))["ended"]

    assert ended["detail"] == {"operator": "ann", "reason": "a wrong price"}


async def test_its_history_goes_on_in_another_channel(publisher):
    publication = await publisher.draft()
    other = await publisher.tenant.channel()
    await publisher.call("edit_publication", publication, 1, json.dumps({"channel_id": str(other)}), "ann")

    assert len((await ask_one(publisher.tenant, publication))["history"]) == 2


async def test_a_publication_of_another_workspace_is_not_found(publisher):
    publication = await publisher.draft()
    neighbour = await Tenant.create(publisher.tenant.db)

    assert await ask(publisher.tenant, publication, workspace_id=neighbour.workspace) == []
