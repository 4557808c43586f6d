"""Ingest's calls into the database that concern staged posts: one method per function, no other SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NewType
from uuid import UUID

from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.plan import Profile
from autopost_runtime.postgres import Database
from msgspec import Struct, convert

PostId = NewType("PostId", UUID)
LeaseToken = NewType("LeaseToken", UUID)


class StagedPost(Struct, frozen=True, kw_only=True):
    """A post whose media this process is to fetch, while ``lease_token`` is the current one.

    ``request`` is a ``PostRequest`` that is still to be read: one that cannot be must not keep the others waiting.
    """

    workspace_id: WorkspaceId
    post_id: PostId
    run_id: RunId
    trace_id: str | None
    traceparent: str | None
    request: dict[str, Any]
    source: dict[str, Any]
    attempt: int
    lease_token: LeaseToken

    @property
    def is_pulled(self) -> bool:
        """Nobody waits for an answer, nor sends it again."""
        return bool(self.source.get("kind") == "pull")


class Finished(Struct, frozen=True, kw_only=True):
    """What ``finish_staged_post`` decided; ``stale`` when the lease has passed on."""

    verdict: Literal["enqueued", "failed", "missing_profiles", "stale"]
    message_id: UUID | None = None
    enqueued: int = 0
    missing_profiles: tuple[Profile, ...] = ()


class Taken(Struct, frozen=True, kw_only=True):
    """What ``take_media_fetch`` decided; the rest is known when it is ``held``."""

    verdict: Literal["held", "ours", "busy", "stale"]
    blob_ref: str | None = None
    content_type: str | None = None
    size_bytes: int | None = None


class Became(Struct, frozen=True, kw_only=True):
    """What is known of a staged post."""

    post_id: PostId
    status: Literal["staged", "fetching", "enqueued", "failed"]
    run_id: RunId
    trace_id: str | None
    message_id: UUID | None
    attempt: int
    next_attempt_at: datetime | None
    error: dict[str, Any] | None
    stats: dict[str, Any] | None
    created_at: datetime
    finished_at: datetime | None


Failed = Literal["staged", "failed", "enqueued", "stale"]
"""What ``fail_staged_post`` decided; ``enqueued`` when it had been finished after all."""


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
    ) -> Finished:
        """``lost`` are the media that it goes without, each as its event tells it."""
        answer = await self._database.fetchval(
            "SELECT finish_staged_post($1, $2, $3, $4, $5, $6)", *_fence(post), content, audit_deduped, list(lost)
        )
        return convert(answer, Finished)

    async def fail_staged_post(
        self, post: StagedPost, error: dict[str, Any], max_attempts: int, retry_after: timedelta | None
    ) -> Failed:
        wait = None if retry_after is None else int(retry_after.total_seconds() * 1000)
        verdict: Failed = await self._database.fetchval(
            "SELECT fail_staged_post($1, $2, $3, $4, $5, $6)", *_fence(post), error, max_attempts, wait
        )
        return verdict

    async def read_staged_post(self, workspace: WorkspaceId, post_id: UUID) -> Became | None:
        row = await self._database.fetchrow("SELECT * FROM read_staged_post($1, $2)", workspace, post_id)
        return None if row is None else convert(dict(row), Became)

    async def take_media_fetch(self, post: StagedPost, url_hash: str) -> Taken:
        row = await self._database.fetchrow("SELECT * FROM take_media_fetch($1, $2, $3, $4)", *_fence(post), url_hash)
        return convert(dict(row or {}), Taken)

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
