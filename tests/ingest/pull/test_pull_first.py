"""Where a new source begins: with all that it has, with nothing, or with the newest few."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from autopost_ingest.pull.import_items import ImportLimits
from harness.databases import Database
from ingest.support.pull_setup import Pulls, Site, entry, rss


@pytest.fixture
async def pulls(database: Database) -> Pulls:
    return await Pulls.create(database)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().open() as opened:
        yield opened


def feed(count: int, *, dated: bool) -> str:
    """The newest first; with dates the other way round, since then they decide."""
    items = [
        entry(number, f"<pubDate>Mon, 09 Nov 2026 09:{number:02}:00 GMT</pubDate>" if dated else "")
        for number in range(1, count + 1)
    ]
    return rss(*items if dated else reversed(items))


def titles(*numbers: int) -> list[str]:
    return [f"<b>Title {number}</b>" for number in numbers]


@pytest.mark.parametrize("dated", [True, False])
@pytest.mark.parametrize(
    ("first", "posted"), [("all", [1, 2, 3, 4, 5]), ("none", []), (2, [4, 5]), (9, [1, 2, 3, 4, 5])]
)
async def test_a_feed_begins_where_it_was_told_to(
    pulls: Pulls, site: Site, first: Any, posted: list[int], dated: bool
) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", feed(5, dated=dated)), include=["title"], first=first)

    async with pulls.replica(limits=ImportLimits(chunk=2)) as replica:
        await replica.puller.round()
        begun = await pulls.texts(), await pulls.refs()
        site.put("/feed", feed(7, dated=dated))
        await pulls.again(replica)

    assert begun == (titles(*posted), ["1", "2", "3", "4", "5"])
    assert await pulls.texts() == titles(*posted, 6, 7)
    assert (await pulls.stats())[0].get("passed_over", 0) == 5 - len(posted)
    assert await pulls.events("ingress_payload_rejected") == []


async def test_a_feed_that_does_not_say_where_it_begins_posts_nothing_that_was_there_before(
    pulls: Pulls, site: Site
) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", feed(3, dated=True)), include=["title"], begins=None)

    async with pulls.replica() as replica:
        await replica.puller.round()
        begun = await pulls.texts(), await pulls.refs()
        site.put("/feed", feed(4, dated=True))
        await pulls.again(replica)

    assert begun == ([], ["1", "2", "3"])
    assert await pulls.texts() == titles(4)


async def test_a_source_that_has_nothing_yet_begins_with_what_comes(pulls: Pulls, site: Site) -> None:
    await pulls.add("api", "api", url=site.put("/api", "[]"), fields={"id": "id", "title": "id"}, first="none")

    async with pulls.replica() as replica:
        await replica.puller.round()
        site.put("/api", '[{"id": "new"}]')
        await pulls.again(replica)

    assert await pulls.texts() == ["<b>new</b>"]


async def test_a_feed_that_broke_off_has_not_begun(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", feed(4, dated=False)[:-60]), include=["title"], first="none")

    async with pulls.replica() as replica:
        await replica.puller.round()
        site.put("/feed", feed(4, dated=False))
        await pulls.again(replica)
        site.put("/feed", feed(5, dated=False))
        await pulls.again(replica)

    assert await pulls.texts() == titles(5)


async def test_a_source_that_was_read_before_goes_on_as_it_was(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", feed(1, dated=False)), include=["title"])

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.sql('UPDATE pull_sources SET config_json = config_json || \'{"first": "none"}\'')
        site.put("/feed", feed(2, dated=False))
        await pulls.again(replica)

    assert await pulls.texts() == titles(1, 2)


@pytest.mark.parametrize(("first", "posted"), [("none", []), (1, [6]), (2, [5, 6])])
@pytest.mark.parametrize("newest_first", [True, False])
async def test_pages_are_all_noted_and_the_newest_are_on_one_of_them(
    pulls: Pulls, site: Site, first: Any, posted: list[int], newest_first: bool
) -> None:
    numbers = [6, 5, 4, 3, 2, 1] if newest_first else [1, 2, 3, 4, 5, 6]
    for page in range(3):
        items = [{"id": number, "title": f"Title {number}"} for number in numbers[2 * page : 2 * page + 2]]
        body = {"items": items, "next": f"/{page + 1}" if page < 2 else None}
        site.put(f"/{page}", msgspec.json.encode(body))
    await pulls.add(
        "api",
        "api",
        url=f"{site.url}/0",
        items="items",
        fields={"id": "id", "title": "title"},
        paging={"by": "next", "path": "next"},
        pages=2,
        stop_when_seen=newest_first,
        first=first,
    )

    async with pulls.replica() as replica:
        while await replica.puller.round():
            pass

    assert await pulls.texts() == titles(*posted)
    assert await pulls.refs() == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize(("first", "posted"), [("none", []), (1, [5])])
async def test_a_query_is_read_to_its_end_before_it_begins(pulls: Pulls, first: Any, posted: list[int]) -> None:
    await pulls.sql("CREATE TABLE articles AS SELECT n AS id, 'Title ' || n AS title FROM generate_series(1, 5) n")
    await pulls.bind("dsn", "env:DSN")
    await pulls.add(
        "db",
        "db",
        dsn_ref="dsn",
        query="SELECT id, title FROM articles WHERE id > $1 ORDER BY id",
        fields={"id": "id", "title": "title"},
        cursor={"column": "id", "start": 0},
        rows=2,
        first=first,
    )

    async with pulls.replica(environment={"DSN": pulls.database.url}) as replica:
        while await replica.puller.round():
            pass
        await pulls.sql("INSERT INTO articles VALUES (6, 'Title 6')")
        await pulls.again(replica)

    assert await pulls.texts() == titles(*posted, 6)


@pytest.mark.parametrize("first", ["some", 0, -1, 1001, None])
async def test_nonsense_is_told(pulls: Pulls, site: Site, first: Any) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", feed(1, dated=False)), first=first)

    async with pulls.replica() as replica:
        await replica.puller.round()

    [event] = await pulls.events("ingress_config_error")
    assert "first" in event["message"]
