"""Pull a JSON interface: by paths, page by page, with a secret that goes to nobody else."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web
from autopost_ingest.pull.source_config import Misconfigured, read_source
from autopost_runtime.config.load import Secret
from autopost_runtime.secrets.sealing import Label, SealingKeys
from harness.databases import Database
from ingest.support.pull_setup import Pulls, Site

FIELDS = {"id": "id", "title": "name"}
KEY = b"k" * 32


@pytest.fixture
async def pulls(database: Database) -> Pulls:
    return await Pulls.create(database)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().open() as opened:
        yield opened


class Api:
    """The newest first, in pages of two, by any of three ways to ask for the next."""

    def __init__(self, site: Site, count: int) -> None:
        self.count = count
        self.broken_at: int | None = None
        self.url = site.handle("/api", self.answer)
        self.asked: list[int] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        page = int(request.query.get("page", 1))
        self.asked.append(page)
        if page == self.broken_at:
            return web.Response(status=410)
        start = (page - 1) * 2
        found = [{"id": self.count - place, "name": f"n{self.count - place}"} for place in range(start, start + 2)]
        found = [each for each in found if each["id"] > 0]
        more = start + 2 < self.count
        told: dict[str, Any] = {"data": {"items": found}}
        if more:
            told |= {"next": f"/api?page={page + 1}", "cursor": str(page + 1)}
        return web.Response(body=msgspec.json.encode(told))


PAGINGS = {
    "next": {"by": "next", "path": "next"},
    "cursor": {"by": "cursor", "path": "cursor", "param": "page"},
    "page": {"by": "page", "param": "page"},
}


async def test_items_are_found_by_the_paths_that_the_source_names(pulls: Pulls, site: Site) -> None:
    record = {
        "key": 7,
        "head": {"line": "Fish & chips"},
        "body": "<p>One</p><p>Two</p><script>x</script>",
        "links": [{"href": "/posts/7"}],
        "labels": ["Sale", 5],
        "when": "2026-11-09T09:00:00Z",
    }
    fields = {
        "id": "key",
        "title": "head.line",
        "text": "body",
        "url": "links.0.href",
        "tags": "labels",
        "date": "when",
    }
    url = site.put("/api", msgspec.json.encode([record, {"key": 8, "nothing": None}, 5]))
    await pulls.add("api", "api", url=url, fields=fields, text_format="html", item_tags=True)

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert (await pulls.texts())[0].startswith("<b>Fish &amp; chips</b>\n\nOne\n\nTwo")
    assert await pulls.sql("SELECT tags FROM messages") == ["5", "sale"]
    assert "7" in await pulls.refs()
    assert {event["source_ref"] for event in await pulls.events("ingress_payload_rejected")} >= {"8"}


@pytest.mark.parametrize("paging", PAGINGS)
async def test_all_pages_are_read_and_afterwards_only_the_first(pulls: Pulls, site: Site, paging: str) -> None:
    api = Api(site, 5)
    await pulls.add("api", "api", url=api.url, items="data.items", fields=FIELDS, paging=PAGINGS[paging])

    async with pulls.replica() as replica:
        await replica.puller.round()
        first = list(api.asked)
        await pulls.again(replica)

    assert first[:3] == [1, 2, 3]
    assert api.asked[len(first) :] == [1]
    assert await pulls.refs() == ["1", "2", "3", "4", "5"]
    assert "resume" not in await pulls.cursor()


async def test_a_pull_reads_so_many_pages_and_the_next_goes_on_at_once(pulls: Pulls, site: Site) -> None:
    api = Api(site, 10)
    await pulls.add("api", "api", url=api.url, items="data.items", fields=FIELDS, paging=PAGINGS["next"], pages=2)

    async with pulls.replica() as replica:
        rounds = [await replica.puller.round() for _ in range(4)]

    assert rounds == [1, 1, 1, 0]
    assert api.asked == [1, 2, 3, 4, 5]
    assert len(await pulls.refs()) == 10


async def test_what_came_in_front_while_pages_were_read_is_found_too(pulls: Pulls, site: Site) -> None:
    api = Api(site, 6)
    await pulls.add("api", "api", url=api.url, items="data.items", fields=FIELDS, paging=PAGINGS["page"], pages=2)

    async with pulls.replica() as replica:
        await replica.puller.round()
        api.count = 9
        for _ in range(3):
            await pulls.again(replica)

    assert sorted(map(int, await pulls.refs())) == [*range(1, 10)]


async def test_a_walk_that_fails_goes_on_where_it_was(pulls: Pulls, site: Site) -> None:
    api = Api(site, 6)
    api.broken_at = 2
    await pulls.add("api", "api", url=api.url, items="data.items", fields=FIELDS, paging=PAGINGS["page"])

    async with pulls.replica() as replica:
        await replica.puller.round()
        broken, error = await pulls.refs(), await pulls.error("api")
        api.broken_at = None
        api.asked.clear()
        await pulls.again(replica)

    assert (broken, error) == (["5", "6"], ("http_410", 1))
    assert api.asked[0] == 2
    assert len(await pulls.refs()) == 6


async def test_a_place_that_is_gone_sends_the_walk_back_to_the_beginning(pulls: Pulls, site: Site) -> None:
    api = Api(site, 6)
    await pulls.add("api", "api", url=api.url, items="data.items", fields=FIELDS, paging=PAGINGS["page"], pages=1)

    async with pulls.replica() as replica:
        await replica.puller.round()
        await pulls.sql('UPDATE pull_cursors SET cursor_json = cursor_json || \'{"resume": "99"}\'')
        api.broken_at = 99
        for _ in range(4):
            await pulls.again(replica)

    assert len(await pulls.refs()) == 6


async def test_an_interface_that_gives_the_same_page_for_every_number_is_left(pulls: Pulls, site: Site) -> None:
    url = site.put("/api", msgspec.json.encode([{"id": 1, "name": "always the same"}]))
    await pulls.add("api", "api", url=url, fields=FIELDS, paging=PAGINGS["page"], pages=1, stop_when_seen=False)

    async with pulls.replica() as replica:
        rounds = [await replica.puller.round() for _ in range(3)]

    assert (rounds, len(site.asked)) == ([1, 1, 0], 2)


async def test_a_page_that_points_at_itself_is_read_once(pulls: Pulls, site: Site) -> None:
    url = site.put("/api", msgspec.json.encode({"items": [{"id": 1, "name": "a"}], "next": "/api"}))
    await pulls.add("api", "api", url=url, items="items", fields=FIELDS, paging=PAGINGS["next"], stop_when_seen=False)

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert len(site.asked) <= 2
    assert await pulls.error("api") is None


@pytest.mark.parametrize("place", ["env", "file", "sealed"])
async def test_the_secret_is_sent_as_the_source_says_wherever_it_lies(
    pulls: Pulls, site: Site, place: str, tmp_path: Any
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    label = Label(str(pulls.workspace), "pull", "their-api")
    refs = {
        "env": ("env:THEIR_API", None),
        "file": (f"file:{secret}", None),
        "sealed": ("sealed", SealingKeys(KEY).seal(Secret("s3cret"), label)),
    }
    await pulls.bind("their-api", *refs[place])
    url = site.put("/api", msgspec.json.encode([{"id": 1, "name": "a"}]))
    await pulls.add("api", "api", url=url, fields=FIELDS, auth={"ref": "their-api", "scheme": "Token"})
    environment = {"THEIR_API": "s3cret", "AUTOPOST_SECRETS_KEY": base64.b64encode(KEY).decode()}

    async with pulls.replica(environment=environment) as replica:
        await replica.puller.round()

    assert site.asked[0].headers["Authorization"] == "Token s3cret"
    assert await pulls.refs() == ["1"]


@pytest.mark.parametrize("secret_ref", [None, "env:NOT_SET", "file:/no/such/file", "sealed"])
async def test_a_secret_that_is_not_there_is_told_and_the_source_rests(
    pulls: Pulls, site: Site, secret_ref: str | None
) -> None:
    if secret_ref:
        await pulls.bind("their-api", secret_ref, b"x" if secret_ref == "sealed" else None)
    await pulls.add("api", "api", url=site.url + "/api", fields=FIELDS, auth={"ref": "their-api"})

    async with pulls.replica() as replica:
        await replica.puller.round()

    [event] = await pulls.events("ingress_config_error")
    assert (event["code"], site.asked) == ("secret_missing", [])
    assert "their-api" in event["message"]


async def test_the_secret_goes_to_no_other_site(pulls: Pulls, site: Site) -> None:
    async with Site().open() as other:
        stolen = other.put("/api", "[]")
        await pulls.bind("their-api", "env:THEIR_API")
        told = {"items": [{"id": 1, "name": "a"}], "next": stolen}
        url = site.put("/api", msgspec.json.encode(told))
        await pulls.add(
            "api", "api", url=url, items="items", fields=FIELDS, paging=PAGINGS["next"], auth={"ref": "their-api"}
        )

        async def turn(_: web.Request) -> web.StreamResponse:
            raise web.HTTPFound(stolen)

        await pulls.add("turned", "api", url=site.handle("/turn", turn), fields=FIELDS, auth={"ref": "their-api"})

        async with pulls.replica(environment={"THEIR_API": "s3cret"}) as replica:
            await replica.puller.round()

        assert await pulls.error("api") == ("foreign_page", 1)
        assert ["Authorization" in request.headers for request in other.asked] == [False]


@pytest.mark.parametrize(
    ("body", "reason"),
    [("{", "not valid JSON"), ('{"a": 1}', "no list"), ("[" * 100_000, "not valid JSON"), ("", "not valid JSON")],
)
async def test_an_answer_that_is_none_is_refused_in_words(pulls: Pulls, site: Site, body: str, reason: str) -> None:
    await pulls.add("api", "api", url=site.put("/api", body), fields=FIELDS)

    async with pulls.replica() as replica:
        await replica.puller.round()

    [event] = await pulls.events("ingress_payload_rejected")
    assert (event["code"], reason in event["message"]) == ("unreadable", True)


@pytest.mark.parametrize(
    ("kind", "config", "words"),
    [
        ("rss", {}, "missing required field `url`"),
        ("rss", {"url": "ftp://a.example"}, "$.url"),
        ("rss", {"url": "https://a.example", "every": "1m"}, "unknown field `every`"),
        ("rss", {"url": "https://a.example", "include": ["body"]}, "$.include[0]"),
        ("rss", {"url": "https://a.example", "include": []}, "$.include"),
        ("rss", "https://a.example", "Expected `object`"),
        ("api", {"url": "https://a.example"}, "missing required field `fields`"),
        ("api", {"url": "https://a.example", "fields": {"id": "x"}}, "at least one of"),
        ("api", {"url": "https://a.example", "fields": FIELDS, "paging": {"by": "magic"}}, "$.paging.by"),
        ("api", {"url": "https://a.example", "fields": FIELDS, "pages": 0}, "$.pages"),
        ("api", {"url": "https://a.example", "fields": FIELDS, "auth": {"ref": "x", "secret": "y"}}, "`secret`"),
        ("db", {"dsn_ref": "x", "query": "DELETE FROM posts"}, "$.query"),
        ("db", {"dsn": "postgresql://", "query": "SELECT 1"}, "`dsn"),
        ("db", {"dsn_ref": "x", "query": "SELECT 1", "cursor": {"column": "id"}}, "missing required field `start`"),
    ],
)
def test_nonsense_is_told_by_the_name_of_the_field(kind: Any, config: Any, words: str) -> None:
    with pytest.raises(Misconfigured) as told:
        read_source(kind, config)

    assert words in str(told.value)


async def test_an_answer_of_long_items_is_told_item_by_item_and_the_others_are_posted(pulls: Pulls, site: Site) -> None:
    items = [{"id": number, "title": "t", "body": "word " * 200_000} for number in range(8)]
    body = msgspec.json.encode([*items, {"id": 8, "title": "short", "body": "words"}])
    fields = {"id": "id", "title": "title", "text": "body"}
    await pulls.add("api", "api", url=site.put("/api", body), fields=fields)

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert {event["code"] for event in await pulls.events("ingress_payload_rejected")} == {"too_large"}
    assert len(await pulls.refs()) == 9
    assert await pulls.texts() == ["<b>short</b>\n\nwords"]


async def test_an_answer_of_a_hundred_megabytes_is_refused_while_others_go_on(pulls: Pulls, site: Site) -> None:
    async def huge(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b" " * 1_000_000)
        return response

    await pulls.add("huge", "api", url=site.handle("/huge", huge), fields={"title": "title"})
    await pulls.add("good", "api", url=site.put("/good", '[{"title": "One"}]'), fields={"title": "title"})

    async with pulls.replica() as replica:
        await replica.puller.round()

    assert (await pulls.error("huge"), await pulls.error("good")) == (("too_large", 1), None)
    assert await pulls.texts() == ["<b>One</b>"]
