"""The calls of the collector into the database: one method per function, no other SQL."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from autopost_runtime.postgres import Database
from msgspec import Struct, convert

Place = dict[str, Any]


class Doomed(Struct, frozen=True, kw_only=True):
    """An object that is ours to delete, while the lease lasts that it was marked for."""

    workspace_id: UUID
    blob_ref: str
    origin_url: str
    doom: UUID


class Found(Struct, frozen=True, kw_only=True):
    """``after`` is ``None`` at the end of the walk."""

    doomed: tuple[Doomed, ...]
    after: Place | None


class Keep(Struct, frozen=True, kw_only=True):
    """How long an object stays that nothing refers to."""

    origin: timedelta
    large_video: timedelta
    large_bytes: int


class CollectGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def doom_media(self, bucket: str, keep: Keep, lease: timedelta, after: Place, limit: int) -> Found:
        answer = await self._database.fetchval(
            "SELECT doom_media($1, $2, $3, $4, $5, $6, $7)",
            *(bucket, keep.origin, keep.large_video, keep.large_bytes, lease, after, limit),
        )
        return convert(answer, Found)

    async def doom_strays(self, bucket: str, lease: timedelta, limit: int) -> Found:
        return convert(await self._database.fetchval("SELECT doom_strays($1, $2, $3)", bucket, lease, limit), Found)

    async def bury_media(self, doomed: Doomed) -> bool:
        query = "SELECT bury_media($1, $2, $3)"
        return bool(await self._database.fetchval(query, doomed.workspace_id, doomed.blob_ref, doomed.doom))
