"""An item of a source whose media cannot be had: its words arrive all the same, and nothing is lost silently."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.pictures import PNG
from ingest.support.pull_setup import Pulls, Replica, Site, entry, rss
from ingest.support.staging_ingest import PLENTY, configured, ingesting


@pytest.fixture
async def pulls(database: Database) -> Pulls:
    return await Pulls.create(database)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().open() as site:
        yield site


def picture(url: str) -> str:
    return f'<enclosure url="{url}" type="image/png" length="1"/>'


async def all_ended(pulls: Pulls) -> None:
    async def ended() -> bool:
        return not await pulls.sql("SELECT count(*) FROM staged_posts WHERE status IN ('staged', 'fetching')")

    await eventually(ended, within=PLENTY)


async def pulled(pulls: Pulls, replica: Replica) -> None:
    await pulls.again(replica)
    await all_ended(pulls)


async def statuses(pulls: Pulls) -> list[str]:
    rows = await pulls.database.pool.fetch("SELECT status FROM staged_posts ORDER BY created_at")
    return [row["status"] for row in rows]


async def test_the_words_of_an_item_arrive_once_when_its_picture_is_gone(pulls: Pulls, site: Site, s3: Bucket) -> None:
    gone = site.put("/gone.png?key=secret", "no", status=404)
    site.put("/gone.png", "no", status=404)
    feed = rss(entry("a", f"<description>words</description>{picture(gone)}"))
    await pulls.add("blog", "rss", url=site.put("/feed", feed, headers={"ETag": '"1"'}))

    async with pulls.replica() as replica, ingesting(configured(pulls.database.url, s3)):
        await pulled(pulls, replica)
        first = await pulls.texts()
        site.put("/feed", feed, headers={"ETag": '"2"'})
        await pulled(pulls, replica)

    assert first == await pulls.texts() == ["<b>Title a</b>\n\nwords"]
    assert await statuses(pulls) == ["enqueued"]
    assert await pulls.sql("SELECT source_ref FROM messages") == "a"
    [event] = await pulls.events("media_failed")
    assert (
        event.items()
        >= {
            "source_id": "blog",
            "source_ref": "a",
            "code": "http_404",
            "field": "media[0].url",
            "host": "127.0.0.1",
        }.items()
    )
    assert "secret" not in str(event)
    assert (await pulls.stats())[0].items() >= {"media_failed": 1, "enqueued": 2}.items()


async def test_an_item_goes_with_the_pictures_that_are_there(pulls: Pulls, site: Site, s3: Bucket) -> None:
    site.put("/here.png", PNG)
    site.put("/gone.png", "no", status=404)
    await pulls.add(
        "blog",
        "rss",
        include=["link"],
        url=site.put("/feed", rss(entry("a", picture(f"{site.url}/gone.png") + picture(f"{site.url}/here.png")))),
    )

    async with pulls.replica() as replica, ingesting(configured(pulls.database.url, s3)):
        await pulled(pulls, replica)

    assert await statuses(pulls) == ["enqueued"]
    assert await pulls.sql("SELECT jsonb_array_length(payload -> 'media') FROM messages") == 1
    assert len(await pulls.events("media_failed")) == 1


@pytest.mark.parametrize("there_again", [True, False])
async def test_an_item_of_which_nothing_is_left_is_tried_by_the_next_pulls_and_then_left(
    pulls: Pulls, site: Site, s3: Bucket, there_again: bool
) -> None:
    site.put("/gone.png", "no", status=404)
    feed = site.put(
        "/feed", rss(entry("a", picture(f"{site.url}/gone.png"))), headers={"ETag": '"1"', "Last-Modified": "then"}
    )
    await pulls.add("blog", "rss", include=["link"], url=feed)
    cursors: list[Any] = []

    async with pulls.replica() as replica, ingesting(configured(pulls.database.url, s3)):
        for _ in range(2):
            await pulled(pulls, replica)
            cursors.append(await pulls.cursor())
        if there_again:
            site.put("/gone.png", PNG)
        for _ in range(3):
            await pulled(pulls, replica)

    assert [cursor.keys() for cursor in cursors] == [{"of"}] * 2
    assert (await pulls.cursor()).keys() == {"of", "etag", "last_modified"}
    assert await statuses(pulls) == ["failed", "failed", "enqueued" if there_again else "failed"]
    told = await pulls.events("media_failed")
    assert [(each["source_ref"], each["comes_again"]) for each in told] == [
        ("a", True),
        ("a", True),
        *([] if there_again else [("a", False)]),
    ]
    assert await pulls.sql("SELECT count(*) FROM messages") == there_again
