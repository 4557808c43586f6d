"""Pull: sources are asked when they are due, each on its own, and bring each item once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from autopost_ingest.pull.gateway import ChunkResult, PullClaim, PullGateway
from autopost_ingest.pull.import_items import ImportLimits
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.scheduler import PullLimits
from autopost_ingest.pull.sources.fetch_document import Budget
from autopost_runtime.lifecycle.service import Service
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.pull_setup import Pulls, Site, entry, numbered, rss

FEEDS = Path(__file__).with_name("feeds")
PLENTY = timedelta(minutes=1)


@pytest.fixture
async def pulls(database: Database) -> Pulls:
    return await Pulls.create(database)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().open() as opened:
        yield opened


async def test_a_feed_becomes_posts_the_oldest_first_and_wakes_the_dispatcher(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", rss(entry(2), entry(1, "<link>https://a.example/1</link>"))))

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert await pulls.texts() == ["<b>Title 1</b>\n\nhttps://a.example/1", "<b>Title 2</b>"]
    assert set(replica.ear.heard) == {f"autopost.wakeup.dispatch.{pulls.workspace}"}
    [stats] = await pulls.stats()
    assert (stats["accepted"], stats["enqueued"], stats["ok"]) == (2, 4, 1)
    assert stats["sources"]["blog"]["accepted"] == 2
    assert await pulls.sql("SELECT DISTINCT source ->> 'source_id' FROM messages") == "blog"
    one_trace = (
        "SELECT count(DISTINCT d.trace_id) = 1 AND bool_and(d.trace_id = r.trace_id) FROM deliveries d, ingest_runs r"
    )
    assert await pulls.sql(one_trace)
    assert await pulls.sql(
        "SELECT count(enqueue_batch_id) = 4 AND count(DISTINCT enqueue_batch_id) = 1 FROM deliveries"
    )


async def test_every_feed_of_the_corpus_is_taken_in_and_a_second_pull_brings_nothing_new(
    pulls: Pulls, site: Site
) -> None:
    names = sorted(path.name for path in FEEDS.iterdir() if not path.name.startswith("refused"))
    for name in names:
        await pulls.add(name, "rss", url=site.put(f"/{name}", (FEEDS / name).read_bytes()))
    pace = PullLimits(concurrency=100, per_workspace=100)

    async with pulls.replica(pace=pace) as replica:
        await replica.puller.round()
        first = {table: await pulls.sql(f"SELECT count(*) FROM {table}") for table in ("pull_receipts", "deliveries")}
        await pulls.again(replica)

    once, twice = await pulls.stats()
    again = {table: await pulls.sql(f"SELECT count(*) FROM {table}") for table in ("pull_receipts", "deliveries")}
    assert len(names) >= 30
    assert (again, twice["accepted"], twice["enqueued"]) == (first, 0, 0)
    assert once["accepted"] == first["pull_receipts"] >= 40
    assert once["staged"] == await pulls.sql("SELECT count(*) FROM staged_posts") > 0
    assert {name for name, told in once["sources"].items() if told["outcome"] != "ok"} == {"rss20_truncated.xml"}
    assert await pulls.sql("SELECT count(*) FROM deliveries WHERE status <> 'queued'") == 0


async def test_a_feed_that_has_not_changed_is_not_read_again(pulls: Pulls, site: Site) -> None:
    dated = {"ETag": '"1"', "Last-Modified": "Mon, 09 Nov 2026 09:00:00 GMT"}
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(2), headers=dated))

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.again(replica)

    asked = site.asked[-1].headers
    assert (asked["If-None-Match"], asked["If-Modified-Since"]) == (dated["ETag"], dated["Last-Modified"])
    assert (await pulls.stats())[-1]["sources"]["blog"] == {"outcome": "unchanged", "unchanged": 1}


async def test_what_one_address_said_of_itself_is_not_told_to_another(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/old", numbered(1), headers={"ETag": '"1"'}))
    moved = site.put("/new", numbered(2), headers={"ETag": '"1"'})

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.sql("UPDATE pull_sources SET config_json = jsonb_build_object('url', $1::text)", moved)
        await pulls.again(replica)

    assert "If-None-Match" not in site.asked[-1].headers
    assert await pulls.refs() == ["0000", "0001"]


async def test_what_is_dated_before_the_source_was_to_begin_is_told_once_and_never_posted(
    pulls: Pulls, site: Site
) -> None:
    dates = {"old": "Mon, 09 Nov 2026 08:59:59 GMT", "new": "Mon, 09 Nov 2026 09:00:00 GMT"}
    items = [entry(name, f"<pubDate>{date}</pubDate>") for name, date in dates.items()]
    feed = site.put("/feed", rss(*items, entry("undated")))
    await pulls.add("blog", "rss", url=feed, include=["title"], since="2026-11-09T10:00:00+01:00")

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.again(replica)

    assert sorted(await pulls.texts()) == ["<b>Title new</b>", "<b>Title undated</b>"]
    assert await pulls.refs() == ["new", "old", "undated"]
    [told] = await pulls.events("ingress_payload_rejected")
    assert (told["source_ref"], told["code"]) == ("old", "before_since")


async def test_a_beginning_without_a_zone_is_a_mistake_that_is_told(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(1)), since="2026-11-09T10:00:00")

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert await pulls.error("blog") == ("config_invalid", 1)
    assert await pulls.refs() == []


class Dying(PullGateway):
    """Its process ends after so many chunks, before the next is sent."""

    def __init__(self, gateway: PullGateway, chunks: int) -> None:
        self.__dict__.update(gateway.__dict__)
        self._left = chunks

    async def ingest_pull_chunk(self, *args: Any, **options: Any) -> ChunkResult:
        if not self._left:
            raise asyncio.CancelledError
        taken = await super().ingest_pull_chunk(*args, **options)
        self._left -= taken.verdict == "taken"
        return taken

    async def finish_pull(self, claim: PullClaim, *args: Any, **options: Any) -> bool:
        return False


@pytest.mark.parametrize("chunks", [0, 1, 2, 3])
async def test_whoever_dies_between_chunks_loses_nothing_and_repeats_nothing(
    pulls: Pulls, site: Site, chunks: int
) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(35), headers={"ETag": '"1"'}))
    limits = ImportLimits(chunk=10)

    async with pulls.replica(limits=limits, wrapped=lambda gateway: Dying(gateway, chunks)) as dying:
        with pytest.raises(asyncio.CancelledError):
            await dying.puller.round()
        half, validated = await pulls.refs(), await pulls.cursor()
    await pulls.sql("UPDATE pull_sources SET lease_until = clock_timestamp() - interval '1 second'")
    async with pulls.replica(limits=limits) as replica:
        await replica.puller.round()

    assert (len(half), "etag" in (validated or {})) == (10 * chunks, False)
    assert await pulls.texts() == [f"<b>Title {number:04}</b>" for number in range(35)]
    assert (await pulls.cursor())["etag"] == '"1"'
    assert sum(stats.get("accepted", 0) for stats in await pulls.stats()) == 35


async def test_a_source_that_is_nonsense_says_so_and_rests_while_the_next_goes_on(pulls: Pulls, site: Site) -> None:
    await pulls.add("nonsense", "rss", uri="https://a.example/")
    await pulls.add("inside", "rss", url="http://10.0.0.1/feed")
    await pulls.add("lonely", "rss", endpoint=False, url=site.put("/feed", numbered(1)))
    await pulls.add("good", "rss", url=site.put("/feed", numbered(1)))

    async with pulls.replica(pace=PullLimits(per_workspace=10)) as replica:
        await replica.puller.round()

    told = {event["source_id"]: event for event in await pulls.events("ingress_config_error")}
    assert {name: event["code"] for name, event in told.items()} == {
        "nonsense": "config_invalid",
        "inside": "forbidden_address",
        "lonely": "endpoint_missing",
    }
    assert "`uri`" in told["nonsense"]["message"]
    assert len(await pulls.texts()) == 1
    assert await pulls.sql("SELECT min(next_pull_at - now()) > interval '3 minutes' FROM pull_sources")


async def test_sources_that_hang_redirect_for_ever_or_never_end_block_nobody(pulls: Pulls, site: Site) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)

    async def turn(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"/turn?{request.query_string}x")

    for name, handler in {"hang": site.hang, "drip": drip, "endless": endless}.items():
        await pulls.add(name, "rss", url=site.handle(f"/{name}", handler))
    await pulls.add("round", "rss", url=site.handle("/turn", turn))
    declared = site.put("/declared", b"x" * 2_000_000)
    await pulls.add("declared", "rss", url=declared)
    for number in range(3):
        await pulls.add(f"good {number}", "rss", url=site.put(f"/good{number}", numbered(2)))
    budget = Budget(size=1_000_000, within=timedelta(seconds=7), idle=timedelta(seconds=4))
    service = Service("ingest")

    async with pulls.replica(budget=budget, pace=PullLimits(concurrency=6, per_workspace=10)) as replica:
        running = asyncio.create_task(replica.puller.run(service))
        all_pulled = "SELECT count(*) = 8 FROM pull_sources WHERE pulled_at IS NOT NULL"
        await eventually(lambda: pulls.sql(all_pulled), within=PLENTY)
        service.stop()
        await running

    found = {name: await pulls.error(name) for name in ("hang", "drip", "endless", "round", "declared", "good 0")}
    assert found == {
        "hang": ("timeout", 1),
        "drip": ("timeout", 1),
        "endless": ("too_large", 1),
        "round": ("too_many_redirects", 1),
        "declared": ("too_large", 1),
        "good 0": None,
    }
    assert len(await pulls.texts()) == 2
    assert {event["source_id"] for event in await pulls.events("ingress_payload_rejected")} == {"endless", "declared"}


async def test_a_document_that_takes_too_long_to_read_ends_alone(pulls: Pulls, site: Site) -> None:
    await pulls.add("slow", "rss", url=site.put("/slow", numbered(3000)))
    await pulls.add("good", "rss", url=site.put("/good", numbered(1)))

    async with pulls.replica(reader=DocumentReader(1, timedelta(seconds=0.1))) as replica:
        await replica.puller.round()

    assert await pulls.error("slow") == ("unreadable", 1)
    assert await pulls.refs() == ["0000"]


@pytest.mark.parametrize(
    ("status", "headers", "code"),
    [(404, {}, "http_404"), (503, {"Retry-After": "7200"}, "http_503"), (500, {}, "http_500")],
)
async def test_a_source_that_refuses_rests_at_least_as_long_as_it_asked_for(
    pulls: Pulls, site: Site, status: int, headers: dict[str, str], code: str
) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", "no", status=status, headers=headers))

    async with pulls.replica() as replica:
        await replica.puller.round()

    rest = await pulls.sql("SELECT next_pull_at - clock_timestamp() FROM pull_sources")
    assert await pulls.error("blog") == (code, 1)
    assert rest > timedelta(hours=1.9) if headers else rest < timedelta(minutes=7)


YEARS = "Wed, 21 Oct %s 07:28:00 GMT"


@pytest.mark.parametrize(
    ("told", "longest"),
    [
        ("999999999", timedelta(days=1.3)),
        ("9" * 4000, timedelta(days=1.3)),
        (YEARS % 9999, timedelta(days=1.3)),
        (YEARS % ("9" * 14), timedelta(minutes=7)),
        ("Wed, 21 Oct 2015 07:28:00 " + "9" * 30, timedelta(minutes=7)),
    ],
    ids=["nine digits", "endless", "the last year", "no year", "no zone"],
)
async def test_a_source_that_asks_for_a_senseless_wait_rests_for_a_day_at_most(
    pulls: Pulls, site: Site, told: str, longest: timedelta
) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", "no", status=503, headers={"Retry-After": told}))

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert await pulls.error("blog") == ("http_503", 1)
    assert await pulls.sql("SELECT next_pull_at - clock_timestamp() FROM pull_sources") < longest


async def test_a_feed_that_breaks_off_gives_what_is_whole_and_the_rest_when_it_is_there(
    pulls: Pulls, site: Site
) -> None:
    whole = numbered(3)
    await pulls.add("blog", "rss", url=site.put("/feed", whole[:-60], headers={"ETag": '"1"'}))

    async with pulls.replica() as replica:
        await replica.puller.round()
        broken, error = await pulls.refs(), await pulls.error("blog")
        site.put("/feed", whole, headers={"ETag": '"1"'})
        await pulls.again(replica)

    assert (broken, error) == (["0001", "0002"], ("truncated", 1))
    assert await pulls.refs() == ["0000", "0001", "0002"]


async def test_of_twins_in_a_feed_one_is_posted_and_the_other_told(pulls: Pulls, site: Site) -> None:
    await pulls.add(
        "blog",
        "rss",
        url=site.put("/feed", rss(entry("new"), entry(1), "<item><guid>1</guid><title>Old</title></item>")),
    )

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.again(replica)

    [event] = await pulls.events("ingress_dedup_dropped")
    assert event["source_refs"] == ["1"]
    assert await pulls.texts() == ["<b>Old</b>", "<b>Title new</b>"]


async def test_an_item_with_nothing_to_say_is_told_once(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", rss("<item><guid>empty</guid></item>", entry(1))))

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.again(replica)

    [event] = await pulls.events("ingress_payload_rejected")
    assert (event["source_ref"], event["code"]) == ("empty", "unprocessable")
    assert await pulls.texts() == ["<b>Title 1</b>"]


async def test_an_item_goes_without_a_link_that_leads_nowhere(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", rss(entry(1, "<link>https://exa mple.com/</link>"))))

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert await pulls.texts() == ["<b>Title 1</b>"]


async def test_an_item_that_the_database_will_not_have_is_passed_over_alone(pulls: Pulls, site: Site) -> None:
    await pulls.sql("ALTER TABLE messages ADD CONSTRAINT not_seven CHECK (source_ref <> '0007')")
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(20), headers={"ETag": '"1"'}))

    async with pulls.replica() as replica:
        await replica.puller.round()

    [event] = await pulls.events("ingress_payload_rejected")
    assert (event["source_ref"], event["code"]) == ("0007", "not_storable")
    assert len(await pulls.texts()) == 19
    assert (await pulls.cursor())["etag"] == '"1"'


async def test_a_channel_that_appears_meanwhile_is_compiled_for(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(2)))

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.sql("UPDATE channels SET settings = '{\"silent\": true}' WHERE platform = 'telegram'")
        site.put("/feed", numbered(3))
        await pulls.again(replica)

    assert len(await pulls.texts()) == 3
    assert (await pulls.stats())[-1]["enqueued"] == 2


async def test_an_item_with_pictures_is_staged_with_its_words_and_wakes_who_fetches(pulls: Pulls, site: Site) -> None:
    picture = '<enclosure url="https://a.example/1.png" type="image/png" length="1"/>'
    await pulls.add("blog", "rss", url=site.put("/feed", rss(entry(1, picture), entry(2))))

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.again(replica)

    assert await pulls.sql("SELECT request #>> '{media,0,url}' FROM staged_posts") == "https://a.example/1.png"
    assert await pulls.sql("SELECT request ->> 'text' FROM staged_posts") == "<b>Title 1</b>"
    assert (await pulls.texts(), replica.staged.is_set()) == (["<b>Title 2</b>"], True)


async def test_without_a_store_for_media_posts_are_made_of_words(pulls: Pulls, site: Site) -> None:
    picture = '<enclosure url="https://a.example/1.png" type="image/png" length="1"/>'
    await pulls.add("blog", "rss", url=site.put("/feed", rss(entry(1, picture))))

    async with pulls.replica(limits=ImportLimits(with_media=False)) as replica:
        await replica.puller.round()

    assert await pulls.texts() == ["<b>Title 1</b>"]


async def test_any_number_of_replicas_pull_each_source_once(pulls: Pulls, site: Site) -> None:
    for number in range(12):
        await pulls.add(str(number), "rss", url=site.put(f"/{number}", rss(entry(f"of {number}"))))
    service = Service("ingest")
    pace = PullLimits(concurrency=3, per_workspace=20, poll=timedelta(milliseconds=10))

    async with pulls.replica(pace=pace) as one, pulls.replica(pace=pace) as two, pulls.replica(pace=pace) as three:
        running = [asyncio.create_task(each.puller.run(service)) for each in (one, two, three)]
        all_pulled = "SELECT bool_and(pulled_at IS NOT NULL) FROM pull_sources"
        await eventually(lambda: pulls.sql(all_pulled), within=PLENTY)
        service.stop()
        await asyncio.gather(*running)

    assert sorted(request.path for request in site.asked) == sorted(f"/{number}" for number in range(12))
    assert len(await pulls.texts()) == 12


async def test_who_is_told_to_stop_gives_back_what_it_holds(pulls: Pulls, site: Site) -> None:
    await pulls.add("hang", "rss", url=site.handle("/hang", site.hang))
    service = Service("ingest")

    async with pulls.replica() as replica:
        running = asyncio.create_task(replica.puller.run(service))
        await site.reached.wait()
        service.stop()
        await running

    assert await pulls.sql("SELECT lease_token IS NULL AND failures = 0 AND next_pull_at <= now() FROM pull_sources")
    assert (await pulls.stats())[0]["interrupted"] == 1


async def test_a_pull_that_takes_too_long_keeps_what_it_has_and_lets_others_go_on(pulls: Pulls, site: Site) -> None:
    await pulls.add("hang", "rss", url=site.handle("/hang", site.hang))

    async with pulls.replica(pace=PullLimits(budget=timedelta(milliseconds=300))) as replica:
        await replica.puller.round()

    assert await pulls.error("hang") == ("over_budget", 1)
