"""The media of a dry run: fetched by the same guarded way as for a post, looked at, and thrown away."""

import asyncio
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import MediaItem, MediaType, PostRequest
from autopost_runtime.fetch import Unfetched
from msgspec.structs import replace

from autopost_ingest.crowds import Crowded, Turns
from autopost_ingest.download import Downloaded, Downloader, Unstored
from autopost_ingest.gateway import Origin
from autopost_ingest.materialize import Materializer
from autopost_ingest.normalize import Normalized, Refused, media_type, normalize

WITHIN = timedelta(seconds=60)
"""For all of it, from the wait for a turn on."""

SHARE = 2
"""Dry runs of a workspace that fetch at a time. Posts wait in the database for their turn, these wait here."""

Found = dict[tuple[str, MediaType], Origin]
"""By URL and kind."""


class DryMedia:
    """``downloader`` is ``None`` where no media is fetched."""

    def __init__(
        self,
        materializer: Materializer,
        downloader: Downloader | None,
        *,
        turns: Turns | None = None,
        within: timedelta = WITHIN,
    ) -> None:
        self._materializer = materializer
        self._downloader = downloader
        self._turns = turns or Turns(SHARE)
        self._within = within

    async def materialize(self, workspace: WorkspaceId, request: PostRequest, *, skip: bool) -> tuple[Normalized, bool]:
        """And whether it is whole: with ``skip`` what stands at a URL is left there.

        Raises ``Refused``, or ``Crowded`` when there was no turn or no room to fetch it.
        """
        normalized = normalize(request)
        remote = [place for place, item in enumerate(request.media) if item.url is not None]
        if skip or not remote:
            normalized = await self._materializer.materialize(workspace, normalized)
            return _with_stand_ins(normalized), not remote
        if self._downloader is None:
            raise Refused(f"media[{remote[0]}].url", "media is not fetched here; say media=skip")
        fetched = await self._fetch(workspace, _Fetching(self._downloader.on_behalf_of(workspace)), request)
        named = replace(request, media=tuple(_named(item, fetched) for item in request.media))
        origins = {origin.blob_ref: origin for origin in fetched.values()}
        return await self._materializer.materialize(workspace, normalize(named), origins), True

    async def _fetch(self, workspace: WorkspaceId, fetching: "_Fetching", request: PostRequest) -> Found:
        has_turn = False
        try:
            async with asyncio.timeout(self._within.total_seconds()), self._turns.of(workspace):
                has_turn = True
                return await fetching.fetch(request)
        except TimeoutError:
            if not has_turn:
                raise Crowded("other dry runs of this workspace are fetching; try again or say media=skip") from None
            raise Refused("media", f"all of it took longer than {self._within.seconds} s; say media=skip") from None


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
        self._found: Found = {}

    async def fetch(self, request: PostRequest) -> Found:
        for place, item in enumerate(request.media):
            await self._fetch(item, f"media[{place}].url")
        return self._found

    async def _fetch(self, item: MediaItem, field: str) -> None:
        if item.url is None or (key := _key(item)) in self._found:
            return
        try:
            async with self._downloader.download(*key) as medium:
                self._found[key] = _origin(medium)
        except Unfetched as exc:
            raise Refused(field, f"it cannot be fetched: {exc.code}") from None
        except Unstored:
            raise Crowded("there is no room to fetch media to; try again or say media=skip") from None


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


def _named(item: MediaItem, fetched: Found) -> MediaItem:
    return item if item.url is None else replace(item, url=None, blob_ref=fetched[_key(item)].blob_ref)
