"""The owner of a publication is told once of each ending; who cannot be reached holds up nobody."""

import json
from datetime import timedelta

import asyncpg
import pytest
from db.support.builders import Tenant, permanent
from db.support.publications import Publisher

HOOK = "https://hooks.example/secret-path"
ALL = ["smtp", "telegram", "webhook"]


@pytest.fixture
async def publisher(tenant) -> Publisher:
    return await Publisher.create(tenant)


async def failed(publisher, owner=HOOK, text="Sale!"):
    publication = await publisher.begun(text, owner=owner)
    await publisher.tenant.set_channel(publisher.channel, "next_allowed_at = NULL")
    await publisher.tenant.commit(permanent(await publisher.tenant.claim_one(), code="message_too_long", message="no"))
    return publication


async def due(publisher, limit=10, targets=ALL):
    return await publisher.tenant.db.fetch("SELECT * FROM next_owner_notices($1, $2)", targets, limit)


async def record(publisher, notice, outcome, wait=None):
    named = (notice["workspace_id"], notice["publication_id"], notice["version"], notice["code"])
    await publisher.tenant.db.execute(
        "SELECT record_owner_notice($1, $2, $3, $4, $5, 'http_500', $6)", *named, outcome, wait
    )


async def waits(publisher):
    """Seconds until the next try, by publication."""
    query = """
        SELECT publication_id, round(date_part('epoch', next_try_at - clock_timestamp()))::int AS seconds
        FROM publication_notices
    """
    return {row["publication_id"]: row["seconds"] for row in await publisher.tenant.db.fetch(query)}


async def test_a_notice_says_what_happened_where_and_nothing_of_the_post(publisher):
    publication = await failed(publisher, text="a very secret price")

    [notice] = await due(publisher)

    told = json.loads(notice["notice"])
    assert (notice["publication_id"], notice["version"], notice["code"]) == (publication, 2, "content")
    assert (notice["owner"], notice["target"]) == (HOOK, "webhook")
    assert (told["status"], told["code"], told["channel"]["platform"]) == ("failed", "content", "telegram")
    assert told["error"]["code"] == "message_too_long"
    assert "very secret" not in notice["notice"]
    assert set(told) == {"status", "code", "at", "scheduled_at", "channel", "error"}


@pytest.mark.parametrize(
    ("owner", "target"),
    [
        ("telegram:-100", "telegram"),
        ("mailto:ann@shop.example", "smtp"),
        ("HTTPS://shop.example/", "webhook"),
        ("http://shop.example/", None),
        ("telegram:", None),
        ("ann", None),
        (None, None),
    ],
)
async def test_who_has_no_address_is_named_in_the_alert_only(database, owner, target):
    assert await database.pool.fetchval("SELECT owner_target($1)", owner) == target


async def test_a_publication_of_a_name_has_no_notice(publisher):
    await failed(publisher, owner="ann")

    assert await due(publisher) == []


async def test_what_was_delivered_is_not_tried_again(publisher):
    await failed(publisher)
    [notice] = await due(publisher)

    await record(publisher, notice, "delivered")

    assert await due(publisher) == []
    told = await publisher.tenant.db.fetch("SELECT told_at, last_error FROM publication_notices")
    assert [row["told_at"] is not None for row in told] == [True]


async def test_tries_are_further_and_further_apart_up_to_an_hour(publisher):
    publication = await failed(publisher)
    [notice] = await due(publisher)
    seen = []

    for _ in range(14):
        await record(publisher, notice, "refused")
        seen.append((await waits(publisher))[publication])

    assert seen[:4] == [2, 4, 8, 16]
    assert seen[-1] == 3600


async def test_a_wait_that_the_owner_asks_for_is_kept(publisher):
    publication = await failed(publisher)
    [notice] = await due(publisher)

    await record(publisher, notice, "unreachable", timedelta(minutes=30))

    assert (await waits(publisher))[publication] == 1800


async def test_an_owner_who_cannot_be_reached_costs_one_try_whatever_waits_for_them(publisher):
    first, second = [await failed(publisher, text=text) for text in ("a", "b")]
    other = await failed(publisher, owner="mailto:ann@shop.example", text="c")

    notices = await due(publisher)
    assert [one["publication_id"] for one in notices] == [first, other]
    await record(publisher, notices[0], "unreachable")

    assert [one["publication_id"] for one in await due(publisher)] == [other]
    assert (await waits(publisher))[second] == 2


async def test_a_notice_that_is_refused_delays_no_other_of_its_owner(publisher):
    first, second = [await failed(publisher, text=text) for text in ("a", "b")]
    [notice] = await due(publisher)
    assert notice["publication_id"] == first

    await record(publisher, notice, "refused")

    assert [one["publication_id"] for one in await due(publisher)] == [second]


async def test_workspaces_take_turns(publisher):
    for text in ("a", "b", "c"):
        await failed(publisher, owner=f"https://{text}.example/", text=text)
    neighbour = await Publisher.create(await Tenant.create(publisher.tenant.db))
    theirs = await failed(neighbour)

    assert theirs in {one["publication_id"] for one in await due(publisher, limit=2)}


async def test_what_this_installation_cannot_send_waits_and_is_given_up_with_the_reason(publisher):
    await failed(publisher, owner="mailto:ann@shop.example")
    assert await due(publisher, targets=["webhook"]) == []

    async def give_up():
        return await publisher.tenant.db.fetch("SELECT * FROM give_up_owner_notices('3 days')")

    assert await give_up() == []
    await publisher.tenant.db.execute("UPDATE publication_notices SET created_at = created_at - interval '3 days'")

    [row] = await give_up()
    assert tuple(row) == ("smtp", "no_target", 1)
    assert await due(publisher) == []


async def test_nobody_of_a_disabled_workspace_is_told(publisher):
    await failed(publisher)
    await publisher.tenant.db.execute("UPDATE workspaces SET status = 'disabled'")

    assert await due(publisher) == []


async def test_an_unknown_outcome_is_refused(publisher):
    await failed(publisher)
    [notice] = await due(publisher)

    with pytest.raises(asyncpg.PostgresError, match="cannot end as lost"):
        await record(publisher, notice, "lost")
