"""Import a medium of a staged post into the object store, once for all posts of the workspace that need it.

Bytes are complete and checked before they are stored, under their digest: a partial download never becomes an object,
and one image from two URLs is one object. The database records an object before it is written, so it knows every object
in the store.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from typing import BinaryIO

from autopost_contracts.payload import MediaType
from autopost_runtime.storage.objects import CHUNK, Objects

from autopost_ingest.staging.download import Downloaded, Downloader, StorageFailed, check_fit
from autopost_ingest.staging.gateway import MediaFetch, StagedGateway, StagedPost

POLL_INTERVAL = timedelta(milliseconds=200)
"""Between checks of a URL that another post is fetching."""

MAX_WRITES = 2
"""Concurrent writes: each holds a part of several megabytes in memory."""


class LeaseLost(Exception):  # noqa: N818  named for what happened
    """Another worker has the post; the work done for it is dropped."""


class MediaImporter:
    def __init__(self, gateway: StagedGateway, downloader: Downloader, objects: Objects) -> None:
        self._gateway = gateway
        self._downloader = downloader
        self._objects = objects
        self._writing = asyncio.Semaphore(MAX_WRITES)

    async def import_media(self, post: StagedPost, url: str, kind: MediaType) -> str:
        """Its ``blob_ref``. Raises ``Unfetched``, ``StorageFailed`` or ``LeaseLost``."""
        url_hash = sha256(url.encode()).hexdigest()
        taken = await self._take(post, url_hash)
        if taken.verdict == "stale":
            raise LeaseLost
        if taken.verdict == "held":
            return self._reused(taken, kind)
        async with self._downloader.on_behalf_of(post.workspace_id).download(url, kind) as medium:
            if not await self._gateway.note_media_put(post, url_hash, medium.blob_ref):
                raise LeaseLost
            origin = await self._put(post, medium)
            await self._remember(post, url_hash, medium, origin)
            return medium.blob_ref

    async def _take(self, post: StagedPost, url_hash: str) -> MediaFetch:
        while True:
            taken = await self._gateway.take_media_fetch(post, url_hash)
            if taken.verdict != "busy":
                return taken
            await asyncio.sleep(POLL_INTERVAL.total_seconds())  # the other process has no way to notify us

    def _reused(self, taken: MediaFetch, kind: MediaType) -> str:
        check_fit(kind, taken.content_type, taken.size_bytes or 0, self._downloader.limits)
        return taken.blob_ref or ""

    async def _put(self, post: StagedPost, medium: Downloaded) -> str:
        """Written even if it exists: media_gc may be deleting the existing object."""
        key = f"{post.workspace_id}/media/{medium.digest}"
        try:
            async with self._writing:
                await self._objects.put(key, _chunks(medium.file), medium.content_type)
        except Exception as exc:
            raise StorageFailed from exc
        return f"s3://{self._objects.bucket}/{key}"

    async def _remember(self, post: StagedPost, url_hash: str, medium: Downloaded, origin_url: str) -> None:
        await self._gateway.finish_media_fetch(
            post,
            url_hash,
            digest=medium.digest,
            origin_url=origin_url,
            content_type=medium.content_type,
            size=medium.size,
            width=medium.width,
            height=medium.height,
            name=medium.name,
        )


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    file.seek(0)
    while chunk := file.read(CHUNK):
        yield chunk
