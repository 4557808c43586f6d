"""Media of a dry run: fetched with the same guards as for a post, inspected and discarded."""

import asyncio
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import MediaItem, MediaType, PostRequest
from autopost_runtime.fetch.fetch import Unfetched
from msgspec.structs import replace

from autopost_ingest.admission.quotas import WorkspaceSemaphores
from autopost_ingest.errors import AtCapacity, InvalidPost
from autopost_ingest.gateway import Origin
from autopost_ingest.posts.normalize import Normalized, media_type
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.stored_media import StoredMedia, with_urls
from autopost_ingest.staging.download import Downloaded, Downloader, StorageFailed

WITHIN = timedelta(seconds=60)
"""Time limit for all media, including the wait for a slot."""

SHARE = 2
"""Concurrently fetching dry runs per workspace. Posts queue in the database, dry runs queue here."""

Found = dict[tuple[str, MediaType], Origin]
"""By URL and kind."""


class DryMedia:
    """``downloader`` is ``None`` when fetching is not configured."""

    def __init__(
        self,
        stored_media: StoredMedia,
        downloader: Downloader | None,
        *,
        offload: Offload,
        turns: WorkspaceSemaphores | None = None,
        within: timedelta = WITHIN,
    ) -> None:
        self.offload = offload
        self._stored_media = stored_media
        self._downloader = downloader
        self._turns = turns or WorkspaceSemaphores(SHARE)
        self._within = within

    async def by_url(self, workspace: WorkspaceId, request: PostRequest) -> Normalized | None:
        """The post with its URLs, for channels that accept them. ``None`` unless all media by URL is images."""
        remote = [media_type(item) for item in request.media if item.url is not None]
        if not remote or set(remote) != {"image"}:
            return None
        return await self._stored_media.look_up(workspace, await self.offload.normalize(workspace, request))

    async def look_up(self, workspace: WorkspaceId, request: PostRequest, *, skip: bool) -> tuple[Normalized, bool]:
        """The post with its stored media, and whether it is complete: ``skip`` leaves media at URLs unfetched.

        Raises ``InvalidPost``, or ``AtCapacity`` when no slot or no disk space was free.
        """
        normalized = await self.offload.normalize(workspace, request)
        remote = [place for place, item in enumerate(request.media) if item.url is not None]
        if skip or not remote:
            normalized = await self._stored_media.look_up(workspace, normalized)
            return with_urls(with_stand_ins(normalized), request.media), not remote
        if self._downloader is None:
            raise InvalidPost(
                f"media[{remote[0]}].url", "fetching media by URL is not configured on this server; add media=skip"
            )
        fetched = await self._fetch(workspace, _Fetching(self._downloader.on_behalf_of(workspace)), request)
        named = replace(request, media=tuple(_named(item, fetched) for item in request.media))
        origins = {origin.blob_ref: origin for origin in fetched.values()}
        normalized = await self.offload.normalize(workspace, named)
        normalized = await self._stored_media.look_up(workspace, normalized, origins)
        return with_urls(normalized, request.media), True

    async def _fetch(self, workspace: WorkspaceId, fetching: "_Fetching", request: PostRequest) -> Found:
        has_turn = False
        try:
            async with asyncio.timeout(self._within.total_seconds()), self._turns.of(workspace):
                has_turn = True
                return await fetching.fetch(request)
        except TimeoutError:
            if not has_turn:
                raise AtCapacity(
                    "too many dry runs of this workspace are fetching media; retry later or add media=skip"
                ) from None
            raise InvalidPost(
                "media", f"fetching all media took longer than {self._within.seconds} s; add media=skip"
            ) from None


def with_stand_ins(normalized: Normalized) -> Normalized:
    """Placeholders for skipped media, so that the plan shows where it would be."""
    media = tuple(
        medium if medium.url is None else replace(medium, url=None, blob_ref=f"skipped:media[{place}]")
        for place, medium in enumerate(normalized.content.media)
    )
    return replace(normalized, content=replace(normalized.content, media=media))


class _Fetching:
    """Fetches the media of one post: each URL once, one after the other."""

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
            raise InvalidPost(field, f"cannot be fetched: {exc.code}") from None
        except StorageFailed:
            raise AtCapacity("no disk space for fetched media; retry later or add media=skip") from None


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
