"""Bring a medium of a staged post into our store, once for all posts of the workspace that wait for it.

The bytes are whole and checked before anything is stored, and stored under their own digest: half a download never
becomes an object, and the same picture from two URLs is one. Before an object is written it is noted, so that nothing
lies in the store that the database has not heard of.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from typing import BinaryIO

from autopost_contracts.payload import MediaType
from autopost_runtime.objects import CHUNK, Objects

from autopost_ingest.download import Downloaded, Downloader, Unstored, check_fit
from autopost_ingest.staged_gateway import StagedGateway, StagedPost, Taken

GLANCE = timedelta(milliseconds=200)
"""Between two looks at a URL that another post is fetching."""

AT_ONCE = 2
"""Objects being written: each has a part of several megabytes in memory."""


class LeaseLost(Exception):  # noqa: N818  named for what happened
    """The post is somebody else's now; what was done for it is dropped."""


class Bringer:
    def __init__(self, gateway: StagedGateway, downloader: Downloader, objects: Objects) -> None:
        self._gateway = gateway
        self._downloader = downloader
        self._objects = objects
        self._writing = asyncio.Semaphore(AT_ONCE)

    async def bring(self, post: StagedPost, url: str, kind: MediaType) -> str:
        """Its ``blob_ref``. Raises ``Unfetched``, ``Unstored`` or ``LeaseLost``."""
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

    async def _take(self, post: StagedPost, url_hash: str) -> Taken:
        while True:
            taken = await self._gateway.take_media_fetch(post, url_hash)
            if taken.verdict != "busy":
                return taken
            await asyncio.sleep(GLANCE.total_seconds())  # another process may be at it, and cannot call us

    def _reused(self, taken: Taken, kind: MediaType) -> str:
        check_fit(kind, taken.content_type, taken.size_bytes or 0, self._downloader.limits)
        return taken.blob_ref or ""

    async def _put(self, post: StagedPost, medium: Downloaded) -> str:
        """Again, also when it is there: an object that is being collected would be gone a moment later."""
        key = f"{post.workspace_id}/media/{medium.digest}"
        try:
            async with self._writing:
                await self._objects.put(key, _chunks(medium.file), medium.content_type)
        except Exception as exc:
            raise Unstored from exc
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
