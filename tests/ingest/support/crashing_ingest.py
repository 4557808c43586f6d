"""Ingest that kills itself with SIGKILL at a given step of a media post.

Run as a program it is warmed up once and then forks a child for each line of standard input, which names the moment.
The child's address goes to standard output when it listens, then its end.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, BinaryIO

import msgspec
from autopost_contracts.payload import MediaType
from autopost_ingest.gateway import Endpoint, Gateway, Push, Verdict
from autopost_ingest.staging.assembly import downloader_of
from autopost_ingest.staging.download import Downloaded, Downloader
from autopost_ingest.staging.gateway import FinishResult, MediaFetch, StagedGateway, StagedPost
from autopost_runtime.fetch.fetch import Fetched, Fetcher
from autopost_runtime.postgres.pool import Database
from autopost_runtime.telemetry import logs
from harness.buckets import Bucket
from ingest.support.pictures import GUARD
from ingest.support.staging_ingest import configured, ingesting
from msgspec.structs import replace

POINTS = (
    *("received", "admitting", "admitted", "leased", "taken", "downloading", "downloaded", "noted", "putting", "put"),
    *("remembered", "unfinished", "finishing", "committed"),
)
"""In the order in which a post meets them."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingDatabase:
    """Dies when all is written and nothing committed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fetchval(self, query: str, *args: Any) -> Any:
        async with self._database.acquire() as connection, connection.transaction():
            answer = await connection.fetchval(query, *args)
            if not isinstance(answer, dict) or answer["verdict"] != "missing_profiles":  # then nothing is written yet
                die()
            return answer


def mortal_gateway(point: str) -> type[Gateway]:
    class Mortal(Gateway):
        async def admit_posts(
            self, endpoint: Endpoint, posts: Sequence[Push], *, audit_deduped: bool, look_up: bool = False
        ) -> list[Verdict]:
            if point == "received":
                die()
            if point == "admitting":
                self._database = DyingDatabase(self._database)  # type: ignore[assignment]
            verdicts = await super().admit_posts(endpoint, posts, audit_deduped=audit_deduped, look_up=look_up)
            if point == "admitted":
                die()
            return verdicts

    return Mortal


def mortal_staged_gateway(point: str) -> type[StagedGateway]:
    class Mortal(StagedGateway):
        async def lease_staged_posts(self, limit: int, per_workspace: int, lease: timedelta) -> list[StagedPost]:
            posts = await super().lease_staged_posts(limit, per_workspace, lease)
            if posts and point == "leased":
                die()
            return posts

        async def take_media_fetch(self, post: StagedPost, url_hash: str) -> MediaFetch:
            taken = await super().take_media_fetch(post, url_hash)
            if point == "taken":
                die()
            return taken

        async def note_media_put(self, post: StagedPost, url_hash: str, blob_ref: str) -> bool:
            if point == "downloaded":
                die()
            noted = await super().note_media_put(post, url_hash, blob_ref)
            if point == "noted":
                die()
            return noted

        async def finish_media_fetch(self, post: StagedPost, url_hash: str, **facts: Any) -> None:
            if point == "put":
                die()
            await super().finish_media_fetch(post, url_hash, **facts)
            if point == "remembered":
                die()

        async def finish_staged_post(self, post: StagedPost, content: dict[str, Any], **told: Any) -> FinishResult:
            if point == "unfinished":
                die()
            if point == "finishing":  # renewing the lease goes on meanwhile, and kills nobody
                dying = StagedGateway(DyingDatabase(self._database))  # type: ignore[arg-type]
                return await dying.finish_staged_post(post, content, **told)
            finished = await super().finish_staged_post(post, content, **told)
            if finished.verdict == "enqueued" and point == "committed":
                die()
            return finished

    return Mortal


class DyingFile:
    """Dies in the middle of being read."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size

    def seek(self, place: int) -> int:
        return self._file.seek(place)

    def read(self, size: int) -> bytes:
        if self._file.tell() * 10 > self._size * 9:
            die()
        return self._file.read(size)


class DyingFetched(Fetched):
    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in super().chunks():
            yield chunk
            die()


class DyingFetcher(Fetcher):
    @asynccontextmanager
    async def fetch(self, url: str, **limits: Any) -> AsyncIterator[Fetched]:
        async with super().fetch(url, **limits) as fetched:
            yield DyingFetched(fetched._response, fetched._limit)


class DyingDownloader(Downloader):
    """Its downloads are whole; whoever stores them dies on the way."""

    @asynccontextmanager
    async def download(self, url: str, kind: MediaType) -> AsyncIterator[Downloaded]:
        async with super().download(url, kind) as medium:
            yield replace(medium, file=DyingFile(medium.file, medium.size))  # type: ignore[arg-type]


async def live(url: str, bucket: Bucket, point: str) -> None:
    config = configured(url, bucket, fetch_per_workspace=100)  # the dead hold leases too
    fetcher = (DyingFetcher if point == "downloading" else Fetcher)(GUARD)
    downloader = downloader_of(config, fetcher)
    if point == "putting":
        downloader = DyingDownloader(fetcher, downloader.limits)
    async with ingesting(config, mortal_gateway(point), mortal_staged_gateway(point), downloader) as site:
        sys.stdout.write(f"{site.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    url, bucket = sys.argv[1], msgspec.json.decode(sys.argv[2], type=Bucket)
    logs.setup("ingest", "json", "error")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(live(url, bucket, line.strip()))
            os._exit(0)
        end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{end}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
