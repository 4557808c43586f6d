"""Look up the stored media of a post and add its size, type and name, which the compiler needs.

Only media of the same workspace is found. Media with a platform's own id is passed on unchanged.
"""

from collections.abc import Mapping, Sequence

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import MediaItem, Medium
from msgspec.structs import asdict, replace

from autopost_ingest.errors import InvalidPost
from autopost_ingest.gateway import Gateway, Origin
from autopost_ingest.posts.normalize import Normalized


class StoredMedia:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def look_up(
        self, workspace: WorkspaceId, normalized: Normalized, fetched: Mapping[str, Origin] | None = None
    ) -> Normalized:
        """``fetched`` counts as stored. Raises ``InvalidPost`` for the first missing item."""
        refs = {medium.blob_ref for medium in normalized.content.media if medium.blob_ref is not None}
        if not refs:
            return normalized
        origins = await self._gateway.read_media_origins(workspace, sorted(refs))
        for ref, origin in (fetched or {}).items():
            origins[ref] = _merged(origins.get(ref), origin)
        media = tuple(_found(medium, origins, place) for place, medium in enumerate(normalized.content.media))
        return replace(normalized, content=replace(normalized.content, media=media))


def with_urls(normalized: Normalized, items: Sequence[MediaItem]) -> Normalized:
    """Add the source URL of each image, for platforms that accept URLs; ``items`` are those of the request."""
    media = tuple(
        replace(medium, url=item.url.strip()) if item.url and medium.type == "image" else medium
        for medium, item in zip(normalized.content.media, items, strict=True)
    )
    return replace(normalized, content=replace(normalized.content, media=media))


def _merged(stored: Origin | None, fetched: Origin) -> Origin:
    """The merge that ``remember_media_origin`` does in the database."""
    known = {name: value for name, value in asdict(fetched).items() if value is not None}
    return fetched if stored is None else replace(stored, **known)


def _found(medium: Medium, origins: Mapping[str, Origin], place: int) -> Medium:
    if medium.blob_ref is None:
        return medium
    origin = origins.get(medium.blob_ref)
    if origin is None:
        raise InvalidPost(f"media[{place}].blob_ref", "no stored media with this blob_ref in this workspace")
    return replace(
        medium,
        content_type=origin.content_type,
        size=origin.size_bytes,
        width=origin.width,
        height=origin.height,
        name=origin.name,
    )
