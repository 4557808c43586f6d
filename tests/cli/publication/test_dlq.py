"""`autopost dlq`: dead letters of publications, what has become of them, and their retry by a named operator."""

import json
from uuid import uuid4

import pytest
from db.support.builders import Tenant, permanent
from db.support.publications import Publisher
from harness.autopost_command import Autopost
from harness.databases import Database

SIGNED = ("--operator", "ann", "--reason", "the bot is back")


@pytest.fixture
async def publisher(database: Database) -> Publisher:
    return await Publisher.create(await Tenant.create(database.pool), title="News")


@pytest.fixture
def autopost(database: Database, publisher: Publisher) -> Autopost:
    return Autopost(database.url)


async def failed(publisher, text, code="message_too_long", scope="delivery"):
    publication = await publisher.begun(text)
    await publisher.tenant.set_channel(publisher.channel, "next_allowed_at = NULL, enabled = true, paused_until = NULL")
    claim = await publisher.tenant.claim_one()
    await publisher.tenant.commit(permanent(claim, scope, code=code, message=f"no: {code}"))
    await publisher.tenant.set_channel(publisher.channel, "next_allowed_at = NULL, enabled = true, paused_until = NULL")
    return publication


async def listed(autopost, *words):
    return json.loads((await autopost("dlq", *words, "--json")).out)["dead_letters"]


async def test_it_lists_what_failed_newest_first_with_reasons(autopost, publisher):
    first = await failed(publisher, "a very secret price")
    second = await failed(publisher, "b", "no_rights", "channel")

    letters = await listed(autopost, "list")
    table = await autopost("dlq", "list")

    assert [(one["publication_id"], one["error_type"], one["attempts"]) for one in letters] == [
        (str(second), "channel_restricted", 1),
        (str(first), "content", 1),
    ]
    assert all(one["is_open"] and one["letter"]["type"] == "publish_post_failed.v1" for one in letters)
    assert "no: no_rights" in table.out
    assert "secret price" not in table.out
    assert [one["publication_id"] for one in await listed(autopost, "list", "--error-type", "content")] == [str(first)]


async def test_it_shows_all_letters_of_one_and_how_to_retry_it(autopost, publisher):
    publication = await failed(publisher, "a")

    shown = await autopost("dlq", "show", str(publication))
    unknown = await autopost("dlq", "show", str(uuid4()))

    assert (shown.code, unknown.code) == (0, 1)
    assert f"autopost dlq retry {publication}" in shown.out
    assert "message_too_long" in shown.out
    assert "has no dead letter" in unknown.err


async def test_a_retry_is_signed_and_closes_the_letter(autopost, publisher):
    publication = await failed(publisher, "a")

    dry = await autopost("dlq", "retry", str(publication), *SIGNED, "--dry-run")
    assert (dry.code, await publisher.status(publication)) == (0, "failed")
    done = await autopost("dlq", "retry", str(publication), *SIGNED)

    assert (done.code, await publisher.status(publication)) == (0, "publishing")
    [event] = await publisher.tenant.events("manual_requeue")
    meta = json.loads(event["meta"])
    assert (meta["operator"], meta["reason"]) == ("ann", "the bot is back")
    assert await listed(autopost, "list") == []
    assert [one["status"] for one in await listed(autopost, "list", "--all")] == ["publishing"]


async def test_of_two_letters_of_one_publication_the_last_is_open(autopost, publisher):
    publication = await failed(publisher, "a")
    await autopost("dlq", "retry", str(publication), *SIGNED)
    claim = await publisher.tenant.claim_one()
    await publisher.tenant.commit(permanent(claim, code="message_too_long"))

    letters = await listed(autopost, "show", str(publication))

    assert [(one["attempts"], one["is_open"]) for one in letters] == [(2, True), (1, False)]


async def test_one_that_is_refused_keeps_no_other_from_being_retried(autopost, publisher):
    edited, good = await failed(publisher, "a"), await failed(publisher, "b")
    await publisher.call("edit_publication", edited, 2, json.dumps({"creative_draft": {"text": "new"}}), "ann")

    both = await autopost("dlq", "retry", str(edited), str(good), *SIGNED, "--json")

    assert both.code == 1
    verdicts = {row["publication_id"]: row["verdict"] for row in json.loads(both.out)["results"]}
    assert verdicts == {str(edited): "no_open_letter", str(good): "retried"}


async def test_all_of_a_type_are_retried_at_once(autopost, publisher):
    content = await failed(publisher, "a")
    rights = await failed(publisher, "b", "no_rights", "channel")

    done = await autopost("dlq", "retry", "--error-type", "channel_restricted", *SIGNED)

    assert done.code == 0
    assert [await publisher.status(one) for one in (content, rights)] == ["failed", "publishing"]


@pytest.mark.parametrize("words", [(), ("--all", str(uuid4()))])
async def test_either_names_or_a_filter(autopost, words):
    refused = await autopost("dlq", "retry", *words, *SIGNED)

    assert refused.code == 2
    assert "give either publications" in refused.err
