"""Ingest's database calls about posts that were sent: find, read, list, cancel, reschedule, replace."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from autopost_contracts.ids import RunId, WorkspaceId
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

from autopost_ingest.gateway import Endpoint, Push, Verdict

SHOWN_DELIVERIES = 1000


class FoundPost(Struct, frozen=True, kw_only=True):
    """Result of ``find_post``: one request, or with ``run_id`` ``None`` a content."""

    run_id: RunId | None
    message_id: UUID | None
    post_id: UUID | None


class Listing(Struct, frozen=True, kw_only=True):
    """What to list, see ``list_posts``."""

    since: datetime | None = None
    before: UUID | None = None
    source_ref: str | None = None
    state: str | None = None
    limit: int = 50


class Change(Struct, frozen=True, kw_only=True):
    """Result of ``cancel_post`` and ``reschedule_post``."""

    verdict: str
    deliveries: tuple[dict[str, Any], ...]


class Replacement(Verdict, frozen=True, kw_only=True):
    """Result of ``replace_post``: that of ``admit_posts``, or why nothing was replaced."""

    verdict: (  # type: ignore[assignment]
        Literal["accepted", "refused", "staged", "duplicate", "rate_limited", "not_replaced"]
        | Literal["workspace_paused", "workspace_disabled", "endpoint_disabled", "missing_profiles"]
    )
    cancel: Change | None = None


class PostGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_post(self, workspace: WorkspaceId, name: str) -> FoundPost | None:
        row = await self._database.fetchrow("SELECT * FROM find_post($1, $2)", workspace, name)
        return None if row is None else convert(dict(row), FoundPost)

    async def read_post(self, workspace: WorkspaceId, post: FoundPost) -> dict[str, Any]:
        found: dict[str, Any] = await self._database.fetchval(
            "SELECT read_post($1, $2, $3, $4, $5)", workspace, *_ids(post), SHOWN_DELIVERIES
        )
        return found

    async def list_posts(self, workspace: WorkspaceId, wanted: Listing) -> dict[str, Any]:
        found: dict[str, Any] = await self._database.fetchval(
            "SELECT list_posts($1, $2, $3, $4, $5, $6)",
            *(workspace, wanted.since, wanted.before, wanted.source_ref, wanted.state, wanted.limit),
        )
        return found

    async def cancel_post(
        self, workspace: WorkspaceId, post: FoundPost, signature: dict[str, str], *, partial: bool, force: bool
    ) -> Change:
        answer = await self._database.fetchval(
            "SELECT cancel_post($1, $2, $3, $4, $5, $6, $7)", workspace, *_ids(post), signature, partial, force
        )
        return convert(answer, Change)

    async def reschedule_post(
        self, workspace: WorkspaceId, post: FoundPost, at: datetime | None, signature: dict[str, str]
    ) -> Change:
        answer = await self._database.fetchval(
            "SELECT reschedule_post($1, $2, $3, $4, $5, $6)", workspace, *_ids(post), at, signature
        )
        return convert(answer, Change)

    async def replace_post(
        self, endpoint: Endpoint, post: FoundPost, push: Push, signature: dict[str, str], *, force: bool
    ) -> Replacement:
        answer = await self._database.fetchval(
            "SELECT replace_post($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            *(endpoint.workspace_id, endpoint.endpoint_id, *_ids(post), push.post, push.payload_hash, signature, force),
        )
        return convert(answer, Replacement)


def _ids(post: FoundPost) -> tuple[UUID | None, UUID | None, UUID | None]:
    return post.run_id, post.message_id, post.post_id
