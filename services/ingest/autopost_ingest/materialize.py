"""Materialise a post: look up the stored media that it names, so that compiling needs to know nothing else.

Only media of the same workspace is known here. What a provider holds under an id of its own cannot be looked up
and passes as it is.
"""

from collections.abc import Mapping

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import Medium
from msgspec.structs import asdict, replace

from autopost_ingest.gateway import Gateway, Origin
from autopost_ingest.normalize import Normalized, Refused


class Materializer:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def materialize(
        self, workspace: WorkspaceId, normalized: Normalized, fetched: Mapping[str, Origin] | None = None
    ) -> Normalized:
        """``fetched`` is as good as stored. Raises ``Refused`` naming the first item that is neither."""
        refs = {medium.blob_ref for medium in normalized.content.media if medium.blob_ref is not None}
        if not refs:
            return normalized
        origins = await self._gateway.read_media_origins(workspace, sorted(refs))
        for ref, origin in (fetched or {}).items():
            origins[ref] = _brought_up_to_date(origins.get(ref), origin)
        media = tuple(_found(medium, origins, place) for place, medium in enumerate(normalized.content.media))
        return replace(normalized, content=replace(normalized.content, media=media))


def _brought_up_to_date(stored: Origin | None, fetched: Origin) -> Origin:
    """As ``remember_media_origin`` would do it."""
    known = {name: value for name, value in asdict(fetched).items() if value is not None}
    return fetched if stored is None else replace(stored, **known)


def _found(medium: Medium, origins: Mapping[str, Origin], place: int) -> Medium:
    if medium.blob_ref is None:
        return medium
    origin = origins.get(medium.blob_ref)
    if origin is None:
        raise Refused(f"media[{place}].blob_ref", "there is no such stored media")
    return replace(
        medium,
        content_type=origin.content_type,
        size=origin.size_bytes,
        width=origin.width,
        height=origin.height,
        name=origin.name,
    )
