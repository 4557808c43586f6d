"""A workspace may have more render profiles than are remembered: one of them changes, and its posts still go."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.plan import Profile
from autopost_ingest.posts.compile import PROFILES_REMEMBERED, KnownProfiles
from harness.buckets import Bucket
from harness.databases import Database
from ingest.support.ingest_client import DEMO_WORKSPACE, IngestClient
from ingest.support.pictures import PNG, Pictures
from ingest.support.pull_setup import Pulls, Site, numbered
from ingest.support.staging_ingest import workshop

MANY = PROFILES_REMEMBERED + 6
WORKSPACE = WorkspaceId(DEMO_WORKSPACE)


async def many_templates(sql: Callable[..., Awaitable[Any]], workspace: UUID) -> None:
    """As many channels beside those there are, each with a template of its own."""
    await sql(
        "INSERT INTO templates (workspace_id, template_id, version, body) "
        "SELECT $1, 't' || n, 1, n || ' {{ text }}' FROM generate_series(1, $2::int) AS n",
        *(workspace, MANY),
    )
    await sql(
        "INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group, template_ref) "
        "SELECT $1, 'telegram', 'many ' || n, 'many', 'many', 't' || n FROM generate_series(1, $2::int) AS n",
        *(workspace, MANY),
    )


async def change_one(sql: Callable[..., Awaitable[Any]]) -> None:
    await sql("UPDATE templates SET body = 'changed {{ text }}' WHERE template_id = 't1'")


async def test_a_post_goes_to_more_profiles_than_are_remembered(client: IngestClient) -> None:
    await many_templates(client.sql, DEMO_WORKSPACE)
    first = await client.post({"text": "before"})
    await change_one(client.sql)

    answers = [first, *[await client.post({"text": f"after {number}"}) for number in range(3)]]

    assert [answer.status_code for answer in answers] == [202] * 4
    assert [answer.json()["channels"]["enqueued"] for answer in answers] == [40 + MANY] * 4
    assert await client.sql("SELECT count(*) FROM renderings WHERE rendered_text LIKE 'changed after %'") == 3


async def test_a_staged_post_goes_to_more_profiles_than_are_remembered(
    seeded_database: Database, s3: Bucket, site: Pictures
) -> None:
    async with workshop(seeded_database, s3) as shop:
        await many_templates(shop.sql, DEMO_WORKSPACE)
        url = site.put("/cat.png", PNG)
        await shop.became(await shop.stage(url, text="before"), "enqueued")
        await change_one(shop.sql)

        told = await shop.became(await shop.stage(url, text="after"), "enqueued")

    assert (told["attempt"], told["channels"]["enqueued"]) == (1, 40 + MANY)


async def test_a_pulled_post_goes_to_more_profiles_than_are_remembered(database: Database) -> None:
    pulls = await Pulls.create(database)
    await many_templates(pulls.sql, pulls.workspace)
    async with Site().open() as site, pulls.replica() as replica:
        await pulls.add("blog", "rss", url=site.put("/feed", numbered(2)))
        await replica.puller.round()
        await change_one(pulls.sql)
        site.put("/feed", numbered(3))

        await pulls.again(replica)

    assert await pulls.error("blog") is None
    assert (await pulls.stats())[-1]["enqueued"] == 2 + MANY


def test_of_too_many_profiles_the_oldest_are_forgotten() -> None:
    profiles = [Profile(profile_hash=str(number), platform="telegram") for number in range(MANY)]
    remembered = KnownProfiles()

    remembered.learn(WORKSPACE, tuple(profiles[:-1]))
    remembered.learn(WORKSPACE, tuple(profiles[-1:]))

    assert remembered.known(WORKSPACE) == tuple(profiles[-PROFILES_REMEMBERED:])
