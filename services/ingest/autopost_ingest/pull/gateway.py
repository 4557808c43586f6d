"""The calls of pull into the database: one method per function, no other SQL."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_contracts.plan import Profile
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

PullOutcome = Literal["ok", "unchanged", "failed", "rejected", "config_error", "interrupted"]


class PullClaim(Struct, frozen=True, kw_only=True):
    """A source leased to this process.

    Its configuration is unparsed: an invalid row must not block the others.
    """

    workspace_id: WorkspaceId
    source_id: str
    endpoint_id: EndpointId
    kind: str
    config_json: Any
    cursor_json: Any
    lease_token: UUID
    run_id: RunId


class ChunkResult(Struct, frozen=True, kw_only=True):
    """Result of ``ingest_pull_chunk``."""

    verdict: Literal["taken", "missing_profiles", "stopped", "stale"]
    accepted: int = 0
    staged: int = 0
    dedup_dropped: int = 0
    payload_rejected: int = 0
    enqueued: int = 0
    deduped: int = 0
    validation_failed: int = 0
    missing_profiles: tuple[Profile, ...] = ()


class PullCredential(Struct, frozen=True, kw_only=True):
    """Reference to a secret, or the sealed secret; never its plain text."""

    secret_ref: str
    sealed: bytes | None


class PullGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_pull_sources(
        self, limit: int, lease: timedelta, per_workspace: int, trace_id: str | None
    ) -> list[PullClaim]:
        rows = await self._database.fetch(
            "SELECT * FROM claim_pull_sources($1, $2, $3, $4)", limit, lease, per_workspace, trace_id
        )
        return [convert(dict(row), PullClaim) for row in rows]

    async def unseen_pull_items(self, claim: PullClaim, refs: Sequence[str]) -> set[str]:
        rows = await self._database.fetch(
            "SELECT unseen_pull_items($1, $2, $3) AS ref", claim.workspace_id, claim.source_id, refs
        )
        return {row["ref"] for row in rows}

    async def ingest_pull_chunk(
        self,
        claim: PullClaim,
        posts: Sequence[dict[str, Any]],
        refused: Sequence[dict[str, Any]],
        cursor: dict[str, Any],
        *,
        last: bool,
        lease: timedelta,
        audit_deduped: bool,
    ) -> ChunkResult:
        answer = await self._database.fetchval(
            "SELECT ingest_pull_chunk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            claim.workspace_id,
            claim.source_id,
            claim.endpoint_id,
            claim.lease_token,
            posts,
            refused,
            cursor,
            last,
            lease,
            audit_deduped,
        )
        return convert(answer, ChunkResult)

    async def finish_pull(
        self,
        claim: PullClaim,
        outcome: PullOutcome,
        error: dict[str, Any] | None,
        wait: timedelta | None,
        *,
        more: bool,
    ) -> bool:
        """``False`` when the lease was lost."""
        ours = await self._database.fetchval(
            "SELECT finish_pull($1, $2, $3, $4, $5, $6, $7)",
            claim.workspace_id,
            claim.source_id,
            claim.lease_token,
            outcome,
            error,
            wait,
            more,
        )
        return bool(ours)

    async def read_credential(self, workspace: WorkspaceId, name: str) -> PullCredential | None:
        row = await self._database.fetchrow("SELECT * FROM read_credentials($1, 'pull', $2)", workspace, [name])
        return None if row is None else PullCredential(secret_ref=row["secret_ref"], sealed=row["sealed"])
