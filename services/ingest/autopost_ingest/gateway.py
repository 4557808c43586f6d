"""Ingest's calls into the database: one method per function, no other SQL."""

from collections.abc import Sequence
from typing import Any, Literal, cast
from uuid import UUID

from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_contracts.plan import Profile
from autopost_runtime.postgres import Database
from msgspec import Struct, convert

EndpointKind = Literal["webhook_push", "bot_webhook", "pull_source", "bot_api"]


class Endpoint(Struct, frozen=True, kw_only=True):
    workspace_id: WorkspaceId
    endpoint_id: EndpointId
    workspace_status: Literal["active", "paused", "disabled"]
    max_payload_bytes: int


class Verdict(Struct, frozen=True, kw_only=True):
    """What ``admit_post`` decided; which of the other fields are set follows from it."""

    verdict: Literal[
        "accepted", "duplicate", "rate_limited", "workspace_paused", "workspace_disabled", "missing_profiles"
    ]
    message_id: UUID | None = None
    run_id: RunId | None = None
    routed: int = 0
    enqueued: int = 0
    deduped: int = 0
    validation_failed: int = 0
    new: bool = False
    of: str | None = None
    first_run_id: RunId | None = None
    retry_after_ms: int = 0
    missing_profiles: tuple[Profile, ...] = ()


class Origin(Struct, frozen=True, kw_only=True):
    """What is known of stored media; ``None`` is what nobody has looked at."""

    blob_ref: str
    content_type: str | None = None
    size_bytes: int | None = None
    width: int | None = None
    height: int | None = None
    name: str | None = None


class Gateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def resolve_endpoint(self, kind: EndpointKind, secret_hash: str) -> Endpoint | None:
        row = await self._database.fetchrow("SELECT * FROM resolve_endpoint($1, $2)", kind, secret_hash)
        return None if row is None else convert(dict(row), Endpoint)

    async def admit_post(
        self, endpoint: Endpoint, post: dict[str, Any], payload_hash: str, *, audit_deduped: bool, past_gate: bool
    ) -> Verdict:
        answer = await self._database.fetchval(
            "SELECT admit_post($1, $2, $3, $4, $5, $6)",
            endpoint.workspace_id,
            endpoint.endpoint_id,
            post,
            payload_hash,
            audit_deduped,
            past_gate,
        )
        return convert(answer, Verdict)

    async def read_media_origins(self, workspace: WorkspaceId, blob_refs: Sequence[str]) -> dict[str, Origin]:
        """By ``blob_ref``; what the workspace has not stored is left out."""
        rows = await self._database.fetch("SELECT * FROM read_media_origins($1, $2)", workspace, blob_refs)
        return {row["blob_ref"]: convert(dict(row), Origin) for row in rows}

    async def refuse_ingress(
        self, endpoint: Endpoint, action: str, counter: str, detail: dict[str, Any], trace_id: str | None
    ) -> None:
        await self._database.execute(
            "SELECT refuse_ingress($1, $2, 'push', $3, $4, $5, $6)",
            endpoint.workspace_id,
            endpoint.endpoint_id,
            action,
            counter,
            detail,
            trace_id,
        )

    async def ping(self) -> None:
        await self._database.ping()


def profiles_changed(exc: BaseException) -> bool:
    """A channel's profile changed inside the call: nothing was written, compile again."""
    return cast("str | None", getattr(exc, "sqlstate", None)) == "AP008"
