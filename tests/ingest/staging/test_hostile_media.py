"""Media that was made to take long: looking at it takes linear time, and hardly any of the loop."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from io import BytesIO

import pytest
from aiohttp import web
from autopost_contracts.payload import MediaType
from autopost_ingest.staging.download import Downloader, DownloadLimits
from autopost_ingest.staging.file_name import file_name
from autopost_ingest.staging.image_size import image_size
from autopost_ingest.staging.media_types import HEAD, content_type_of
from autopost_runtime.fetch.fetch import Fetcher, Unfetched
from harness.growth import assert_linear
from ingest.support.hostile_media import DISPOSITIONS, MEDIA
from ingest.support.loop_probe import probed
from ingest.support.pictures import GUARD, Handler, Pictures, pictures
from yarl import URL

MiB = 1024 * 1024
BUDGET = 0.05
"""Seconds that the loop may be kept from its turn."""
HEADER = 8190
"""As long as a header may be."""


@pytest.fixture
async def site() -> AsyncIterator[Pictures]:
    async with pictures() as opened:
        yield opened


def in_pieces(body: bytes) -> Handler:
    """Shown so that showing it does not keep the loop, which is the same, from its turns."""

    async def show(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(body), 64 * 1024):
            await response.write(body[start : start + 64 * 1024])
        return response

    return show


@pytest.mark.parametrize("name", MEDIA)
def test_measuring_a_picture_takes_hardly_any_time_whatever_its_size(name: str) -> None:
    content_type, make = MEDIA[name]
    body = BytesIO(make(50 * MiB))
    times = []
    for _ in range(3):
        begun = time.process_time()
        image_size(body, content_type)
        times.append(time.process_time() - begun)

    assert min(times) < BUDGET


@pytest.mark.parametrize("name", MEDIA)
def test_telling_what_bytes_are_takes_linear_time(name: str) -> None:
    assert_linear(lambda head: [content_type_of(head) for _ in range(20)], MEDIA[name][1], HEAD)


@pytest.mark.parametrize("name", DISPOSITIONS)
def test_naming_a_file_takes_linear_time(name: str) -> None:
    def named(disposition: str) -> list[str | None]:
        return [file_name(URL("https://a.example/"), disposition, "image/png") for _ in range(20)]

    assert_linear(named, DISPOSITIONS[name], HEADER)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("JPEG of filling", "image"),
        ("JPEG of filled segments", "file"),
        ("text of tags", "file"),
        ("MP4 of boxes", "video"),
    ],
)
async def test_the_loop_has_its_turns_while_media_as_large_as_allowed_is_fetched(
    site: Pictures, name: str, kind: MediaType
) -> None:
    limits = DownloadLimits()
    url = site.answer("/hostile", in_pieces(MEDIA[name][1](limits.of(kind) - 1)[: limits.of(kind)]))
    downloader = Downloader(Fetcher(GUARD), limits)

    async with probed() as probe:
        with suppress(Unfetched):
            async with downloader.download(url, kind):
                await asyncio.sleep(0)

    assert probe.longest < BUDGET


def test_a_picture_is_measured_behind_as_much_filling_as_cameras_write() -> None:
    frame = b"\xc0" + b"\x00\x11\x08" + b"\x01\x2c\x01\x90" + bytes(10)

    assert image_size(BytesIO(b"\xff\xd8" + b"\xff" * 100 + frame), "image/jpeg") == (400, 300)
    assert image_size(BytesIO(b"\xff\xd8" + b"\xff" * 10_000 + frame), "image/jpeg") is None
