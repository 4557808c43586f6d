"""The database calls of ingest: one method per SQL function, no other SQL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from autopost_contracts.ids import RunId, WorkspaceId
from autopost_contracts.plan import Profile
from autopost_runtime.http.endpoint_cache import Endpoint as Endpoint
from autopost_runtime.http.endpoint_cache import EndpointKind as EndpointKind
from autopost_runtime.postgres.pool import Database
from msgspec import Raw, Struct, convert
from msgspec.json import Decoder


class Signer(Struct, frozen=True, kw_only=True):
    """A signing secret of ``endpoint``, sealed under the name ``auth_ref``."""

    endpoint: Endpoint
    auth_ref: str
    sealed: bytes


class StoredUpdate(Struct, frozen=True, kw_only=True):
    """Result of ``store_bot_update``."""

    verdict: Literal["stored", "duplicate", "rate_limited", "workspace_disabled", "endpoint_disabled"]
    retry_after_ms: int = 0
    chat_id: str = ""
    """The chat that it was stored under."""
    answer: bool = False
    """The bot has to answer it."""
    seq: int | None = None
    """The number of the change in its chat, if the chat shows the update."""


class Push(Struct, frozen=True, kw_only=True):
    """A post document for the database; ``past_gate`` when the rate limit was already charged."""

    post: Raw
    payload_hash: str
    past_gate: bool = False


class Verdict(Struct, frozen=True, kw_only=True):
    """Result of ``admit_posts`` for one post; ``verdict`` decides which other fields are set."""

    verdict: (
        Literal["accepted", "refused", "staged", "duplicate", "rate_limited"]
        | Literal["workspace_paused", "workspace_disabled", "endpoint_disabled", "missing_profiles"]
    )
    post_id: UUID | None = None
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
    first_tags: tuple[str, ...] | None = None
    """Tags of the first post of this content, if they differ; routing uses them."""

    @property
    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("routed", "enqueued", "deduped", "validation_failed")}


_decode_verdicts = Decoder(list[Verdict]).decode


class Origin(Struct, frozen=True, kw_only=True):
    """Facts about stored media; ``None`` is unknown."""

    blob_ref: str
    content_type: str | None = None
    size_bytes: int | None = None
    width: int | None = None
    height: int | None = None
    name: str | None = None


class Repeated(Struct, frozen=True, kw_only=True):
    """The earlier request that this one duplicates, and until when it is remembered."""

    of: Literal["source_ref", "payload"]
    run_id: RunId | None
    until: datetime


class Twin(Struct, frozen=True, kw_only=True):
    """A delivery of the same content to the same channel."""

    delivery_id: UUID
    status: str
    until: datetime | None


class ChannelFacts(Struct, frozen=True, kw_only=True):
    """The channel settings behind a decision. A time can be ``infinity``."""

    route_filter: dict[str, list[str]] | None
    send_mode: str
    tags: tuple[str, ...]
    paused_until: str | None
    cooled_until: str | None


class ChannelPreview(Struct, frozen=True, kw_only=True):
    """Result of ``preview_post`` for one channel."""

    channel_id: UUID
    platform: str
    title: str | None
    profile_hash: str
    routed: bool
    kept_by: tuple[str, ...]
    facts: ChannelFacts
    twin: Twin | None
    waits_for: tuple[str, ...]
    opens_at: datetime | None


class PostPreview(Struct, frozen=True, kw_only=True):
    """Result of ``preview_post``."""

    workspace_status: Literal["active", "paused", "disabled"]
    receipt: Repeated | None
    retry_after_ms: int | None
    message_id: UUID | None
    tags: tuple[str, ...]
    """Tags used for routing."""
    channels: tuple[ChannelPreview, ...]
    profiles: tuple[Profile, ...]


class NamedChannel(Struct, frozen=True, kw_only=True):
    channel_id: UUID
    title: str | None
    platform: str
    target_id: str


class FoundChannels(Struct, frozen=True, kw_only=True):
    """Result of ``find_channels``; ``titles`` and ``tags`` are there to compare an unknown name with."""

    channels: tuple[tuple[NamedChannel, ...], ...]
    unknown_tags: tuple[str, ...]
    titles: tuple[str, ...]
    tags: tuple[str, ...]


class RoutingFacts(Struct, frozen=True, kw_only=True):
    """Result of ``routing_facts``: what warnings depend on."""

    filter_tags: tuple[str, ...]
    closed: int
    """Enabled channels whose posting window is closed."""


class Gateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def on_one_connection(self) -> AsyncIterator[Self]:
        """For several calls in a row."""
        async with self._database.on_one_connection() as database:
            yield type(self)(database)

    @property
    def others_wait(self) -> bool:
        """Other callers wait for a connection (best effort)."""
        return self._database.all_taken

    async def resolve_endpoint(self, kind: EndpointKind, secret_hash: str) -> Endpoint | None:
        row = await self._database.fetchrow("SELECT * FROM resolve_endpoint($1, $2)", kind, secret_hash)
        return None if row is None else convert(dict(row), Endpoint)

    async def read_signing_secrets(self, endpoint: UUID) -> tuple[Signer, ...]:
        rows = await self._database.fetch("SELECT * FROM read_signing_secrets($1)", endpoint)
        return tuple(
            Signer(endpoint=convert(dict(row), Endpoint), auth_ref=row["auth_ref"], sealed=row["sealed"])
            for row in rows
        )

    async def store_bot_update(self, endpoint: Endpoint, update: dict[str, Any]) -> StoredUpdate:
        answer = await self._database.fetchval(
            "SELECT store_bot_update($1, $2, $3)", endpoint.workspace_id, endpoint.endpoint_id, update
        )
        return convert(answer, StoredUpdate)

    async def admit_posts(
        self, endpoint: Endpoint, posts: Sequence[Push], *, audit_deduped: bool, look_up: bool = False
    ) -> list[Verdict]:
        """Results in the order given. ``look_up`` after a conflict: existing content is looked up first."""
        answer = await self._database.fetchval(
            "SELECT admit_posts($1, $2, $3, $4, $5, $6, $7)::text",  # decoded straight into structs
            endpoint.workspace_id,
            endpoint.endpoint_id,
            [push.post for push in posts],
            [push.payload_hash for push in posts],
            [push.past_gate for push in posts],
            audit_deduped,
            look_up,
        )
        return _decode_verdicts(answer)

    async def preview_post(self, endpoint: Endpoint, post: dict[str, Any], payload_hash: str) -> PostPreview:
        answer = await self._database.fetchval(
            "SELECT preview_post($1, $2, $3, $4)", endpoint.workspace_id, endpoint.endpoint_id, post, payload_hash
        )
        return convert(answer, PostPreview)

    async def find_channels(
        self, workspace: WorkspaceId, names: Sequence[str], channel_tags: Sequence[str]
    ) -> FoundChannels:
        answer = await self._database.fetchval("SELECT find_channels($1, $2, $3)", workspace, names, channel_tags)
        return convert(answer, FoundChannels)

    async def routing_facts(self, workspace: WorkspaceId) -> RoutingFacts:
        row = await self._database.fetchrow("SELECT * FROM routing_facts($1)", workspace)
        return convert(dict(row or {}), RoutingFacts)

    async def read_media_origins(self, workspace: WorkspaceId, blob_refs: Sequence[str]) -> dict[str, Origin]:
        """By ``blob_ref``; only media that the workspace has stored."""
        rows = await self._database.fetch("SELECT * FROM read_media_origins($1, $2)", workspace, blob_refs)
        return {row["blob_ref"]: convert(dict(row), Origin) for row in rows}

    async def refuse_ingress(
        self, endpoint: Endpoint, action: str, counter: str, detail: dict[str, Any], trace_id: str | None, count: int
    ) -> None:
        await self._database.execute(
            "SELECT refuse_ingress($1, $2, 'push', $3, $4, $5, $6, $7)",
            endpoint.workspace_id,
            endpoint.endpoint_id,
            action,
            counter,
            detail,
            trace_id,
            count,
        )

    async def flush_refusals(self) -> None:
        await self._database.execute("SELECT flush_refusals()")

    async def fail_push(self, endpoint: Endpoint, trace_id: str | None, code: str) -> None:
        await self._database.execute(
            "SELECT fail_push($1, $2, $3, $4)", endpoint.workspace_id, endpoint.endpoint_id, trace_id, code
        )

    async def ping(self) -> None:
        """Succeeds when the database answers and accepts writes."""
        await self._database.ping("SELECT check_writes()")
