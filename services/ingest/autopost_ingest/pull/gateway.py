"""The calls of pull into the database: one method per function, no other SQL."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_contracts.plan import Profile
from autopost_runtime.postgres import Database
from msgspec import Struct, convert

from autopost_ingest.pull.sources import Kind

Outcome = Literal["ok", "unchanged", "failed", "rejected", "config_error", "interrupted"]


class Claim(Struct, frozen=True, kw_only=True):
    """A source that is ours to pull, until its lease runs out."""

    workspace_id: WorkspaceId
    source_id: str
    endpoint_id: EndpointId
    kind: Kind
    config_json: Any
    cursor_json: dict[str, Any]
    lease_token: UUID
    run_id: RunId


class Taken(Struct, frozen=True, kw_only=True):
    """What ``ingest_pull_chunk`` made of a chunk."""

    verdict: Literal["taken", "missing_profiles", "stopped", "stale"]
    accepted: int = 0
    staged: int = 0
    dedup_dropped: int = 0
    payload_rejected: int = 0
    enqueued: int = 0
    deduped: int = 0
    validation_failed: int = 0
    missing_profiles: tuple[Profile, ...] = ()


class Bound(Struct, frozen=True, kw_only=True):
    """Where a secret lies; never the secret."""

    secret_ref: str
    sealed: bytes | None


class PullGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_pull_sources(
        self, limit: int, lease: timedelta, per_workspace: int, trace_id: str | None
    ) -> list[Claim]:
        rows = await self._database.fetch(
            "SELECT * FROM claim_pull_sources($1, $2, $3, $4)", limit, lease, per_workspace, trace_id
        )
        return [convert(dict(row), Claim) for row in rows]

    async def unseen_pull_items(self, claim: Claim, refs: Sequence[str]) -> set[str]:
        rows = await self._database.fetch(
            "SELECT unseen_pull_items($1, $2, $3) AS ref", claim.workspace_id, claim.source_id, refs
        )
        return {row["ref"] for row in rows}

    async def ingest_pull_chunk(
        self,
        claim: Claim,
        posts: Sequence[dict[str, Any]],
        refused: Sequence[dict[str, Any]],
        cursor: dict[str, Any],
        *,
        last: bool,
        lease: timedelta,
        audit_deduped: bool,
    ) -> Taken:
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
        return convert(answer, Taken)

    async def finish_pull(
        self, claim: Claim, outcome: Outcome, error: dict[str, Any] | None, wait: timedelta | None, *, more: bool
    ) -> bool:
        """``False`` when the lease was no longer ours."""
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

    async def read_credential(self, workspace: WorkspaceId, name: str) -> Bound | None:
        row = await self._database.fetchrow("SELECT * FROM read_credentials($1, 'pull', $2)", workspace, [name])
        return None if row is None else Bound(secret_ref=row["secret_ref"], sealed=row["sealed"])
