"""The database calls of media deletion: one method per SQL function, no other SQL."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

Place = dict[str, Any]


class Deletion(Struct, frozen=True, kw_only=True):
    """An object to delete while its mark is valid."""

    workspace_id: UUID
    blob_ref: str
    origin_url: str
    deletion_token: UUID


class MarkedMedia(Struct, frozen=True, kw_only=True):
    """``after`` is ``None`` at the end of the walk."""

    deletions: tuple[Deletion, ...]
    after: Place | None


class Keep(Struct, frozen=True, kw_only=True):
    """How long an object without references is kept."""

    origin: timedelta
    large_video: timedelta
    large_bytes: int


class MediaGcGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark_media_for_deletion(
        self, bucket: str, keep: Keep, lease: timedelta, after: Place, limit: int
    ) -> MarkedMedia:
        answer = await self._database.fetchval(
            "SELECT mark_media_for_deletion($1, $2, $3, $4, $5, $6, $7)",
            *(bucket, keep.origin, keep.large_video, keep.large_bytes, lease, after, limit),
        )
        return convert(answer, MarkedMedia)

    async def mark_orphan_objects(self, bucket: str, lease: timedelta, limit: int) -> MarkedMedia:
        return convert(
            await self._database.fetchval("SELECT mark_orphan_objects($1, $2, $3)", bucket, lease, limit), MarkedMedia
        )

    async def finish_media_deletion(self, deletion: Deletion) -> bool:
        query = "SELECT finish_media_deletion($1, $2, $3)"
        return bool(
            await self._database.fetchval(query, deletion.workspace_id, deletion.blob_ref, deletion.deletion_token)
        )
