"""A dry run of a post whose media stands at a URL: fetched and thrown away, or skipped."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_network
from typing import Any, cast

import pytest
from aiohttp import web
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import MediaItem, PostRequest
from autopost_contracts.subjects import Topology
from autopost_ingest.admission.admit import Admission
from autopost_ingest.admission.quotas import WorkspaceSemaphores
from autopost_ingest.dry_run.dry_run import DryRunner
from autopost_ingest.dry_run.media import SHARE, DryMedia
from autopost_ingest.errors import AtCapacity
from autopost_ingest.gateway import Gateway
from autopost_ingest.http.receive import application
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.staging.download import Downloader, DownloadLimits
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.fetch.addresses import Guard
from autopost_runtime.fetch.fetch import Fetcher
from autopost_runtime.http.web import Site, serve
from autopost_runtime.postgres.pool import open_database
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client
from harness.telegram_media import png
from ingest.dry_run.test_dry_run import dry_run, everything, told
from ingest.support.ingest_client import DEMO_WORKSPACE, SHOP, Ear, IngestClient
from ingest.support.small_disk import small_disk

PICTURE = png(800, 20)
"""Too long for a photo: its measures change the plan."""


class Gallery:
    """A web server with pictures; ``asked`` counts. A slow one is shown when it ``opens``."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.opens = asyncio.Event()
        self.url = ""

    async def show(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path == "/gone.png":
            return web.Response(status=404)
        if request.path == "/page.png":
            return web.Response(text="<html>", content_type="image/png")
        if request.path == "/large.png":
            return web.Response(body=PICTURE.ljust(1_000_000, b"\0"))
        if request.path == "/slow.png":
            await self.opens.wait()
        return web.Response(body=PICTURE, content_type="text/plain")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Site]:
        app = web.Application()
        app.router.add_get("/{name}", self.show)
        async with await serve(app, "127.0.0.1", 0) as site:
            self.url = site.url
            yield site


UNKNOWN_AFTER = timedelta(seconds=0.3)


async def resolve(host: str) -> Sequence[str]:
    """Inside there is a name, another one has an address inside beside a public one; nobody else is known."""
    known = {"inside.example": ["10.0.0.1"], "mixed.example": ["93.184.216.34", "10.0.0.1"], "127.0.0.1": ["127.0.0.1"]}
    if host not in known:
        raise OSError("nobody knows it")
    return known[host]


@pytest.fixture
async def gallery() -> AsyncIterator[Gallery]:
    made = Gallery()
    async with made.opened():
        yield made


@pytest.fixture
async def client(seeded_database: Database) -> AsyncIterator[IngestClient]:
    """Fetches, also from this machine."""
    config = ServiceConfig(database_url=seeded_database.url, database_role="autopost_ingest", database_pool=4)
    fetcher = Fetcher(Guard((ip_network("127.0.0.0/8"),)), resolve=resolve, unknown_after=UNKNOWN_AFTER)
    downloader = Downloader(fetcher, DownloadLimits())
    async with open_database(config, "ingest") as database, http_client() as http:
        gateway, stored_media, ear = Gateway(database), StoredMedia(Gateway(database)), Ear()
        admission = Admission(gateway, timedelta(seconds=20), parser=Offload())
        dry_runner = DryRunner(admission, gateway, DryMedia(stored_media, downloader, offload=Offload()))
        enqueuer = Enqueuer(gateway, ear, Topology(), audit_deduped=False)  # type: ignore[arg-type]
        async with await serve(application(admission, stored_media, enqueuer, dry_runner), "127.0.0.1", 0) as site:
            yield IngestClient(site.url, http, seeded_database, ear)


def post(*urls: str, **more: Any) -> dict[str, Any]:
    return {"text": "hello", "media": [{"type": "photo", "url": url} for url in urls], **more}


def hashes(found: dict[str, Any]) -> set[str | None]:
    return {channel["plan_hash"] for channel in found["channels"]}


async def test_it_is_fetched_and_the_plan_is_that_of_the_same_bytes_once_they_are_stored(
    client: IngestClient, gallery: Gallery
) -> None:
    before = await everything(client)
    found = await told(client, post(f"{gallery.url}/picture.png"))
    after = await everything(client)

    ref = await client.store(PICTURE, "image/png", width=800, height=20, name="picture.png")
    stored = {"text": "hello", "media": [{"type": "photo", "blob_ref": ref}]}

    assert before == after
    assert gallery.asked == ["/picture.png"]
    again = await told(client, stored)
    assert hashes(found) == hashes(again)
    assert None not in hashes(found)
    assert found["content_hash"] == again["content_hash"]
    await client.post(stored)
    assert await client.sql("SELECT array_agg(DISTINCT plan_hash ORDER BY plan_hash) FROM renderings") == sorted(
        hashes(found)
    )


@pytest.mark.parametrize("name", ["inside.example", "mixed.example"])
async def test_a_name_that_leads_inside_ends_as_one_that_nobody_knows_and_no_sooner(
    client: IngestClient, name: str
) -> None:
    loop = asyncio.get_running_loop()
    answers, times = [], []
    for host in (name, "unknown.example"):
        begun = loop.time()
        answers.append(await dry_run(client, post(f"http://{host}/a.png")))
        times.append(loop.time() - begun)

    inside, unknown = (answer.json() for answer in answers)
    assert inside == unknown
    assert [answer.status_code for answer in answers] == [422, 422]
    assert min(times) >= UNKNOWN_AFTER.total_seconds()


async def test_the_same_url_is_fetched_once(client: IngestClient, gallery: Gallery) -> None:
    found = await told(client, post(*[f"{gallery.url}/a.png"] * 3))

    assert gallery.asked == ["/a.png"]
    assert found["counts"]["enqueued"] == 40


async def test_skipped_media_is_not_asked_for_and_leaves_the_hashes_open(
    client: IngestClient, gallery: Gallery
) -> None:
    found = await told(client, post(f"{gallery.url}/picture.png"), query="?dry_run=1&media=skip")

    assert gallery.asked == []
    assert hashes(found) == {None}
    assert found["content_hash"] is None
    assert {channel["dedup"]["known"] for channel in found["channels"]} == {False}
    assert found["counts"]["enqueued"] == 40
    shown = {plan["plan"]["parts"][0]["media"][0]["blob_ref"] for plan in found["plans"].values()}
    assert shown == {"skipped:media[0]"}


async def test_where_nothing_is_skipped_nothing_is_left_open(client: IngestClient) -> None:
    found = await told(client, {"text": "a"}, query="?dry_run=1&media=skip")

    assert None not in hashes(found)
    assert found["content_hash"]


@pytest.mark.parametrize(("name", "code"), [("gone.png", "http_404"), ("page.png", "wrong_type")])
async def test_what_cannot_be_had_is_named_by_its_place(
    client: IngestClient, gallery: Gallery, name: str, code: str
) -> None:
    before = await everything(client)

    answer = await dry_run(client, post(f"{gallery.url}/a.png", f"{gallery.url}/{name}"))

    told_field = (answer.status_code, answer.json()["field"], answer.json()["detail"])
    assert told_field == (422, "media[1].url", f"cannot be fetched: {code}")
    assert await everything(client) == before


async def test_it_cannot_be_led_inside(client: IngestClient) -> None:
    answer = await dry_run(client, post("http://169.254.169.254/latest/meta-data/"))

    assert (answer.status_code, answer.json()["field"]) == (422, "media[0].url")
    assert "cannot be fetched" in answer.json()["detail"]


async def test_nobody_waits_for_what_another_tenant_fetches(client: IngestClient, gallery: Gallery) -> None:
    slow = [asyncio.create_task(dry_run(client, post(f"{gallery.url}/slow.png"))) for _ in range(10 * SHARE)]
    await eventually(lambda: "/slow.png" in gallery.asked)

    found = await told(client, post(f"{gallery.url}/a.png"), secret=SHOP)

    assert found["content_hash"]
    assert gallery.asked.count("/slow.png") <= SHARE
    gallery.opens.set()
    assert {answer.status_code for answer in await asyncio.gather(*slow)} == {200}


async def test_the_wait_for_a_turn_ends_with_the_time_for_all_of_it() -> None:
    turns, workspace = WorkspaceSemaphores(1), WorkspaceId(DEMO_WORKSPACE)
    downloader = Downloader(Fetcher(Guard()), DownloadLimits())
    media = DryMedia(
        cast(StoredMedia, None), downloader, offload=Offload(), turns=turns, within=timedelta(milliseconds=1)
    )
    request = PostRequest(media=(MediaItem("photo", url="https://a.example/a.png"),))

    async with turns.of(workspace):
        with pytest.raises(AtCapacity) as crowded:
            await media.look_up(workspace, request, skip=False)

    assert (crowded.value.status, "media=skip" in (crowded.value.detail or "")) == (503, True)


async def test_a_full_disk_is_no_fault_of_the_post(client: IngestClient, gallery: Gallery) -> None:
    with small_disk(100_000):
        answer = await dry_run(client, post(f"{gallery.url}/large.png"))

    assert (answer.status_code, "media=skip" in answer.json()["detail"]) == (503, True)
