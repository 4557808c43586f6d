"""Limits of media and of pulls are those that the variables say, each its own."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp import web
from autopost_contracts.payload import MediaType
from autopost_ingest.config import IngestConfig
from autopost_ingest.pull.assembly import budget_of, limits_of, pace_of
from autopost_ingest.staging.assembly import downloader_of, fetcher_of
from autopost_ingest.staging.download import Downloader
from autopost_runtime.config.load import load
from autopost_runtime.fetch.fetch import Unfetched
from ingest.support.pictures import GIF, MP4, Pictures

NEEDED = {"AUTOPOST_DATABASE_URL": "postgresql://a@b/c", "AUTOPOST_FETCH_ALLOW": "127.0.0.1/32"}
HEADS: dict[MediaType, bytes] = {"image": GIF, "animation": GIF, "video": MP4, "audio": b"ID3", "file": b"x"}
SECOND = timedelta(seconds=1)


def config(**said: str) -> IngestConfig:
    return load(IngestConfig, NEEDED | {f"AUTOPOST_{name}": value for name, value in said.items()})


def downloader(**said: str) -> Downloader:
    made = config(**said)
    return downloader_of(made, fetcher_of(made))


async def ending(made: Downloader, url: str, kind: MediaType) -> str:
    try:
        async with made.download(url, kind) as medium:
            return f"{medium.size} bytes"
    except Unfetched as refused:
        return refused.code


@pytest.mark.parametrize(
    ("variable", "kinds"),
    [
        ("MAX_MEDIA_BYTES_IMAGE", {"image"}),
        ("MAX_MEDIA_BYTES_VIDEO", {"video", "animation"}),
        ("FETCH_FILE_LIMIT", {"audio", "file"}),
    ],
)
async def test_a_limit_holds_for_its_kinds_and_for_no_other(site: Pictures, variable: str, kinds: set[str]) -> None:
    made = downloader(**{variable: "300"})

    for kind, head in HEADS.items():
        exact = await ending(made, site.put("/exact", head.ljust(300, b"\0")), kind)
        over = await ending(made, site.put("/over", head.ljust(301, b"\0")), kind)
        assert (kind, exact, over) == (kind, "300 bytes", "too_large" if kind in kinds else "301 bytes")


async def test_a_download_has_as_long_as_the_variable_says(site: Pictures) -> None:
    """It would go on for two seconds; the silence between two bytes is far below its own limit."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for byte in GIF.ljust(40, b"\0"):
            await response.write(bytes([byte]))
            await asyncio.sleep(0.05)
        return response

    url = site.answer("/drip", drip)

    assert await ending(downloader(DOWNLOAD_TIMEOUT_MS="300"), url, "image") == "timeout"
    assert await ending(downloader(DOWNLOAD_TIMEOUT_MS="60000"), url, "image") == "40 bytes"


async def test_a_silence_lasts_as_long_as_the_variable_says(site: Pictures) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(GIF)
        await asyncio.Event().wait()
        return response

    made = downloader(FETCH_IDLE_TIMEOUT="200ms", DOWNLOAD_TIMEOUT_MS="120000")

    async with asyncio.timeout(60):
        assert await ending(made, site.answer("/silent", silent), "image") == "timeout"


def test_a_pull_is_bounded_as_the_variables_say() -> None:
    made = config(
        PULL_CHUNK_SIZE="7",
        PULL_SIZE_LIMIT="2048",
        PULL_TIMEOUT="50s",
        PULL_CONCURRENCY="3",
        PULL_PER_WORKSPACE="2",
        POLL_INTERVAL="9s",
        DOWNLOAD_TIMEOUT_MS="4000",
        FETCH_IDLE_TIMEOUT="3s",
        AUDIT_DEDUPED="true",
    )

    budget, limits, pace = budget_of(made), limits_of(made, with_media=True), pace_of(made)

    assert (budget.size, budget.within, budget.idle) == (2048, 4 * SECOND, 3 * SECOND)
    assert (limits.chunk, limits.lease, limits.audit_deduped, limits.with_media) == (7, 100 * SECOND, True, True)
    assert (pace.concurrency, pace.per_workspace, pace.budget, pace.lease, pace.poll) == (
        *(3, 2, 50 * SECOND),
        *(100 * SECOND, 9 * SECOND),
    )
