"""Ingest's database calls for staged posts: one method per function, no other SQL."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal, NewType
from uuid import UUID

from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.plan import Profile
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

PostId = NewType("PostId", UUID)
LeaseToken = NewType("LeaseToken", UUID)


class StagedPost(Struct, frozen=True, kw_only=True):
    """A post leased to this process, as long as ``lease_token`` is the current one.

    ``request`` is an unparsed ``PostRequest``: an invalid one must not block the others.
    """

    workspace_id: WorkspaceId
    post_id: PostId
    run_id: RunId
    trace_id: str | None
    traceparent: str | None
    request: Any
    source: Any
    attempt: int
    lease_token: LeaseToken

    @property
    def is_pulled(self) -> bool:
        """From a pull source, so no sender can correct it."""
        return isinstance(self.source, dict) and self.source.get("kind") == "pull"


class FinishResult(Struct, frozen=True, kw_only=True):
    """Result of ``finish_staged_post``; ``stale`` when the lease is lost."""

    verdict: Literal["enqueued", "failed", "missing_profiles", "stale"]
    message_id: UUID | None = None
    enqueued: int = 0
    missing_profiles: tuple[Profile, ...] = ()


class MediaFetch(Struct, frozen=True, kw_only=True):
    """Result of ``take_media_fetch``; the other fields are set when it is ``held``."""

    verdict: Literal["held", "ours", "busy", "stale"]
    blob_ref: str | None = None
    content_type: str | None = None
    size_bytes: int | None = None


FailVerdict = Literal["staged", "failed", "enqueued", "stale"]
"""Result of ``fail_staged_post``; ``enqueued`` when it was already finished."""


class StagedGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def lease_staged_posts(self, limit: int, per_workspace: int, lease: timedelta) -> list[StagedPost]:
        rows = await self._database.fetch("SELECT * FROM lease_staged_posts($1, $2, $3)", limit, per_workspace, lease)
        return [convert(dict(row), StagedPost) for row in rows]

    async def renew_staged_post(self, post: StagedPost, lease: timedelta) -> bool:
        return bool(await self._database.fetchval("SELECT renew_staged_post($1, $2, $3, $4)", *_fence(post), lease))

    async def release_staged_post(self, post: StagedPost) -> None:
        await self._database.execute("SELECT release_staged_post($1, $2, $3)", *_fence(post))

    async def finish_staged_post(
        self, post: StagedPost, content: dict[str, Any], *, audit_deduped: bool, lost: Sequence[dict[str, Any]] = ()
    ) -> FinishResult:
        """``lost`` are the media that could not be fetched, each in the form of its event."""
        answer = await self._database.fetchval(
            "SELECT finish_staged_post($1, $2, $3, $4, $5, $6)", *_fence(post), content, audit_deduped, list(lost)
        )
        return convert(answer, FinishResult)

    async def fail_staged_post(
        self, post: StagedPost, error: dict[str, Any], max_attempts: int, retry_after: timedelta | None
    ) -> FailVerdict:
        wait = None if retry_after is None else int(retry_after.total_seconds() * 1000)
        verdict: FailVerdict = await self._database.fetchval(
            "SELECT fail_staged_post($1, $2, $3, $4, $5, $6)", *_fence(post), error, max_attempts, wait
        )
        return verdict

    async def take_media_fetch(self, post: StagedPost, url_hash: str) -> MediaFetch:
        row = await self._database.fetchrow("SELECT * FROM take_media_fetch($1, $2, $3, $4)", *_fence(post), url_hash)
        return convert(dict(row or {}), MediaFetch)

    async def note_media_put(self, post: StagedPost, url_hash: str, blob_ref: str) -> bool:
        return bool(
            await self._database.fetchval(
                "SELECT note_media_put($1, $2, $3, $4)", post.workspace_id, url_hash, post.lease_token, blob_ref
            )
        )

    async def finish_media_fetch(
        self,
        post: StagedPost,
        url_hash: str,
        *,
        digest: str,
        origin_url: str,
        content_type: str,
        size: int,
        width: int | None,
        height: int | None,
        name: str | None,
    ) -> None:
        await self._database.execute(
            "SELECT finish_media_fetch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            *(post.workspace_id, url_hash, post.lease_token, f"sha256:{digest}", origin_url, digest),
            *(content_type, size, width, height, name),
        )


def _fence(post: StagedPost) -> tuple[UUID, UUID, UUID]:
    return post.workspace_id, post.post_id, post.lease_token
