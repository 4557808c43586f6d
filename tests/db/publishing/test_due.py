"""When publications start: once, on time by the database's clock, and not when their time is long past."""

import asyncio
import json
from datetime import timedelta

from db.support.builders import Tenant
from db.support.publications import SECOND, Publisher, now


async def test_of_many_scans_each_due_publication_starts_once(tenant):
    publisher = await Publisher.create(tenant)
    publications = [await publisher.scheduled(f"ad {nth}") for nth in range(60)]

    answers = await asyncio.gather(*(publisher.due(7) for _ in range(16)))

    started = [one["publication_id"] for answer in answers for one in answer["due"]]
    assert sorted(started) == sorted(map(str, publications))
    commands = await publisher.commands()
    assert {one["msg_id"] for one in commands} == {f"publish:{one}:2" for one in publications}
    assert commands[0]["payload"]["type"] == "publish_post.v1"


async def test_nothing_starts_early_and_the_answer_says_when_the_next_is_due(tenant):
    publisher = await Publisher.create(tenant)
    at = now() + timedelta(minutes=10)
    publication = await publisher.scheduled(at=at)

    early = await publisher.due(at=at - SECOND / 1000)
    assert (early["due"], 0 < early["next_in"] <= 0.001) == ([], True)
    assert (await publisher.due())["next_in"] > 590
    assert [one["publication_id"] for one in (await publisher.due(at=at))["due"]] == [str(publication)]


async def test_more_that_is_due_is_due_at_once_and_nothing_is_never(tenant):
    publisher = await Publisher.create(tenant)
    for nth in range(3):
        await publisher.scheduled(f"ad {nth}")

    assert (await publisher.due(2))["next_in"] == 0
    assert (await publisher.due(2))["next_in"] is None


async def test_a_paused_workspace_starts_nothing_and_its_time_may_pass(tenant):
    publisher = await Publisher.create(tenant)
    soon = await publisher.scheduled("soon", late_after="24 hours")
    gone = await publisher.scheduled("gone", late_after="1 hour", owner="mailto:ann@shop.example")
    await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)
    assert (await publisher.due())["due"] == []
    await tenant.db.execute("UPDATE workspaces SET status = 'active' WHERE workspace_id = $1", tenant.workspace)

    answer = await publisher.due(at=now() + timedelta(hours=2))

    assert ([one["publication_id"] for one in answer["due"]], answer["missed"]) == ([str(soon)], 1)
    shown = await publisher.show(gone)
    assert (shown["status"], shown["pause_code"]) == ("paused", "missed")
    notices = await tenant.db.fetch("SELECT code, owner FROM publication_notices")
    assert [tuple(row) for row in notices] == [("missed", "mailto:ann@shop.example")]


async def test_a_time_there_and_back_again_starts_at_the_last_one_and_once(tenant):
    """A, B, A: each has a version of its own, so no command is taken for an earlier one."""
    publisher = await Publisher.create(tenant)
    publication = await publisher.scheduled(at=now())
    await publisher.due()
    await publisher.schedule(publication, now() + timedelta(minutes=5))
    await publisher.schedule(publication, now())
    await publisher.due()

    assert [one["msg_id"][-1] for one in await publisher.commands()] == ["2", "4"]
    assert [await publisher.begin(publication, version) for version in (2, 3, 4, 4)] == [
        *("stale", "stale", "begun", "already")
    ]


async def test_an_orphan_is_found_and_what_is_begun_is_none(tenant):
    publisher = await Publisher.create(tenant)
    publication = await publisher.scheduled()
    await publisher.due()

    async def orphans(older):
        rows = await tenant.db.fetch("SELECT * FROM orphaned_publications($1, 10)", older)
        return [row["publication_id"] for row in rows]

    assert await orphans(timedelta(0)) == [publication]
    assert await orphans(timedelta(minutes=1)) == []
    await publisher.begin(publication)
    assert await orphans(timedelta(0)) == []


async def test_commands_are_published_until_that_is_noted(tenant):
    publisher = await Publisher.create(tenant)
    await publisher.scheduled()
    await publisher.due()

    async def left():
        return await tenant.db.fetch("SELECT * FROM unpublished_commands('0', 10)")

    [command] = await left()
    assert (command["subject"], json.loads(command["payload"])["version"]) == ("delivery.commands", 2)
    keys = [command["workspace_id"]], [command["command_id"]]
    assert await tenant.db.fetchval("SELECT commands_published($1, $2)", *keys) == 1
    assert await tenant.db.fetchval("SELECT commands_published($1, $2)", *keys) == 0
    assert await left() == []


async def test_a_publication_that_waited_too_long_behind_its_channel_is_paused(tenant):
    publisher = await Publisher.create(tenant)
    publication = await publisher.begun(late_after="1 hour")
    other = await publisher.begun("in time", late_after="24 hours")
    for one in (publication, other):
        await tenant.db.execute(
            "UPDATE publications SET scheduled_at = clock_timestamp() - interval '2 hours' WHERE publication_id = $1",
            one,
        )

    assert await tenant.db.fetchval("SELECT drop_missed_publications(10)") == 1

    shown = await publisher.show(publication)
    assert (shown["status"], shown["pause_code"]) == ("paused", "missed")
    assert await publisher.status(other) == "publishing"
    assert await publisher.commands("delivery.commands.dlq") == []
    assert await publisher.call("retry_publication", publication, 2, "bob", "late is fine") is not None
    assert await publisher.status(publication) == "publishing"


async def test_tenants_are_apart(tenant):
    publisher = await Publisher.create(tenant)
    publication = await publisher.scheduled()
    stranger = await Publisher.create(await Tenant.create(tenant.db))

    assert await stranger.call("read_publication", publication) is None
    assert await stranger.cancel(publication) == "not_found"
