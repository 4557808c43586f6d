"""The media of a dry run: fetched by the same guarded way as for a post, looked at, and thrown away."""

import asyncio
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import MediaItem, MediaType, PostRequest
from autopost_runtime.fetch import Unfetched
from msgspec.structs import replace

from autopost_ingest.download import Downloaded, Downloader
from autopost_ingest.gateway import Origin
from autopost_ingest.materialize import Materializer
from autopost_ingest.normalize import Normalized, Refused, media_type, normalize

WITHIN = timedelta(seconds=60)
AT_ONCE = 4
"""Dry runs that fetch. Posts wait in the database for their turn, these wait here."""


class DryMedia:
    """``downloader`` is ``None`` where no media is fetched."""

    def __init__(self, materializer: Materializer, downloader: Downloader | None) -> None:
        self._materializer = materializer
        self._downloader = downloader
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def materialize(self, workspace: WorkspaceId, request: PostRequest, *, skip: bool) -> tuple[Normalized, bool]:
        """And whether it is whole: with ``skip`` what stands at a URL is left there. Raises ``Refused``."""
        normalized = normalize(request)
        remote = [place for place, item in enumerate(request.media) if item.url is not None]
        if skip or not remote:
            normalized = await self._materializer.materialize(workspace, normalized)
            return _with_stand_ins(normalized), not remote
        if self._downloader is None:
            raise Refused(f"media[{remote[0]}].url", "media is not fetched here; say media=skip")
        async with self._turn:
            fetched = await _Fetching(self._downloader.on_behalf_of(workspace)).fetch(request)
        named = replace(request, media=tuple(_named(item, fetched) for item in request.media))
        origins = {origin.blob_ref: origin for origin in fetched.values()}
        return await self._materializer.materialize(workspace, normalize(named), origins), True


def _with_stand_ins(normalized: Normalized) -> Normalized:
    """No plan has a URL in it; one of media that was skipped shows the places where the media would be."""
    media = tuple(
        medium if medium.url is None else replace(medium, url=None, blob_ref=f"skipped:media[{place}]")
        for place, medium in enumerate(normalized.content.media)
    )
    return replace(normalized, content=replace(normalized.content, media=media))


class _Fetching:
    """One post: each URL once, one after the other."""

    def __init__(self, downloader: Downloader) -> None:
        self._downloader = downloader
        self._found: dict[tuple[str, MediaType], Origin] = {}

    async def fetch(self, request: PostRequest) -> dict[tuple[str, MediaType], Origin]:
        try:
            async with asyncio.timeout(WITHIN.total_seconds()):
                for place, item in enumerate(request.media):
                    await self._fetch(item, f"media[{place}].url")
        except TimeoutError:
            raise Refused("media", f"all of it took longer than {WITHIN.seconds} s; say media=skip") from None
        return self._found

    async def _fetch(self, item: MediaItem, field: str) -> None:
        if item.url is None or (key := _key(item)) in self._found:
            return
        try:
            async with self._downloader.download(*key) as medium:
                self._found[key] = _origin(medium)
        except Unfetched as exc:
            raise Refused(field, f"it cannot be fetched: {exc.code}") from None


def _origin(medium: Downloaded) -> Origin:
    return Origin(
        blob_ref=medium.blob_ref,
        content_type=medium.content_type,
        size_bytes=medium.size,
        width=medium.width,
        height=medium.height,
        name=medium.name,
    )


def _key(item: MediaItem) -> tuple[str, MediaType]:
    return (item.url or "").strip(), media_type(item)


def _named(item: MediaItem, fetched: dict[tuple[str, MediaType], Origin]) -> MediaItem:
    return item if item.url is None else replace(item, url=None, blob_ref=fetched[_key(item)].blob_ref)
