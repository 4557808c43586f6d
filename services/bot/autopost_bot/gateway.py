"""The bot's database calls: one method per SQL function, no other SQL.

One workspace never uses more than half of the connections. Documents come as JSON text: what a workspace stored is
passed on, and the loop does not parse it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal
from uuid import UUID

import msgspec
from autopost_contracts.ids import EndpointId, WorkspaceId
from autopost_runtime.http.endpoint_cache import Endpoint, EndpointKind
from autopost_runtime.http.quotas import AtCapacity
from autopost_runtime.lifecycle.fair_slots import FairSlots, QueueFull
from autopost_runtime.postgres.batches import Batches
from autopost_runtime.postgres.pool import Database
from autopost_runtime.secrets.credentials import Credential
from msgspec import Raw, Struct, convert

WAITING = 200
"""Calls of one workspace that wait for a connection; further ones are refused."""


class BotCounts(Struct, frozen=True):
    """A row of ``bot_counts``."""

    workspace_id: WorkspaceId
    unanswered: int
    oldest_at: datetime | None
    unsent: int
    waiting: int
    handed_over: int
    stopped: int


class TicketEndpoint(Endpoint, frozen=True, kw_only=True):
    """An endpoint with the key of its tickets."""

    ticket_key: bytes


class ActionResult(Struct, frozen=True, kw_only=True):
    """One result of ``change_actions``; ``verdict`` decides which other fields are set."""

    verdict: (
        Literal["created", "refreshed", "changed", "finished"]
        | Literal["completed", "same", "ignored", "unknown"]
        | Literal["endpoint_disabled", "workspace_disabled", "workspace_paused", "rate_limited"]
    )
    action: Raw = Raw(b"{}")
    seq: int = 0
    wait_ms: int | None = None


class Change(Struct, frozen=True):
    """A row of ``chat_changes``."""

    seq: int
    kind: Literal["message", "bot_action", "resync"]
    body: Raw | None
    at: datetime | None


class WebhookCheck(Struct, frozen=True):
    """A bot whose provider is to be asked where it sends the bot's updates to."""

    workspace_id: WorkspaceId
    provider: str
    auth_ref: str


class Gateway:
    def __init__(self, database: Database, connections: int = 10) -> None:
        self._database = database
        self._slots = FairSlots(connections, per_holder=max(1, connections // 2), waiting=WAITING)
        self._changes: dict[EndpointId, Batches[dict[str, Any], ActionResult]] = {}

    async def bot_counts(self) -> list[BotCounts]:
        rows = await self._database.fetch("SELECT * FROM bot_counts()")
        return [convert(dict(row), BotCounts) for row in rows]

    async def resolve_endpoint(self, kind: EndpointKind, secret_hash: str) -> Endpoint | None:
        row = await self._database.fetchrow("SELECT * FROM resolve_endpoint($1, $2)", kind, secret_hash)
        return None if row is None else convert(dict(row), Endpoint)

    async def chat_ticket_key(self, endpoint: UUID) -> TicketEndpoint | None:
        row = await self._database.fetchrow("SELECT * FROM chat_ticket_key($1)", endpoint)
        return None if row is None else convert(dict(row), TicketEndpoint)

    async def start_action(self, endpoint: Endpoint, action: dict[str, Any]) -> ActionResult:
        return await self._change(endpoint, {"call": "start", **action})

    async def update_action(self, endpoint: Endpoint, action: dict[str, Any]) -> ActionResult:
        return await self._change(endpoint, {"call": "update", **action})

    async def _change(self, endpoint: Endpoint, change: dict[str, Any]) -> ActionResult:
        """Changes of one endpoint that come during a call share the next one; endpoints never wait for each other."""
        batches = self._changes.get(endpoint.endpoint_id)
        if batches is None:
            batches = Batches(partial(self._change_actions, endpoint), key=id, holder=_chat_of)
            self._changes[endpoint.endpoint_id] = batches
        if batches.waiting >= WAITING:
            raise AtCapacity("too many concurrent requests of this endpoint; retry later")
        return await batches.ask(change)

    async def _change_actions(self, endpoint: Endpoint, changes: list[dict[str, Any]]) -> list[ActionResult]:
        query = "SELECT change_actions($1, $2, $3)::text"
        async with self._connection_of(endpoint.workspace_id):
            results = await self._database.fetchval(query, endpoint.workspace_id, endpoint.endpoint_id, changes)
        return msgspec.json.decode(results, type=list[ActionResult])

    async def list_actions(self, workspace: WorkspaceId, chat_id: str, limit: int) -> tuple[Raw, int]:
        """The actions under way, as JSON, and the chat's number, as of one moment."""
        async with self._connection_of(workspace):
            row = await self._database.fetchrow(
                "SELECT actions::text, seq FROM list_actions($1, $2, $3)", workspace, chat_id, limit
            )
        return (Raw(b"[]"), 0) if row is None else (Raw(row["actions"]), row["seq"])

    async def chat_messages(
        self, workspace: WorkspaceId, chat_id: str, after: int | None, before: int | None, limit: int
    ) -> list[dict[str, Any]]:
        async with self._connection_of(workspace):
            rows = await self._database.fetch(
                "SELECT * FROM chat_messages($1, $2, $3, $4, $5)", workspace, chat_id, after, before, limit
            )
        return [{"seq": row["seq"], **row["body"]} for row in rows]

    async def chat_changes(self, workspace: WorkspaceId, chat_id: str, after: int, limit: int) -> list[Change]:
        async with self._connection_of(workspace):
            rows = await self._database.fetch(
                "SELECT seq, kind, body::text, at FROM chat_changes($1, $2, $3, $4)", workspace, chat_id, after, limit
            )
        return [Change(row["seq"], row["kind"], row["body"] and Raw(row["body"]), row["at"]) for row in rows]

    async def chat_heads(self, workspaces: Sequence[WorkspaceId], chat_ids: Sequence[str]) -> list[int]:
        return list(await self._database.fetchval("SELECT chat_heads($1, $2)", workspaces, chat_ids))

    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None:
        row = await self._database.fetchrow(
            "SELECT * FROM read_credentials($1, $2, $3)", workspace, platform, [auth_ref]
        )
        return None if row is None else convert(dict(row), Credential)

    async def take_webhook_checks(self, older: timedelta, limit: int) -> list[WebhookCheck]:
        rows = await self._database.fetch("SELECT * FROM take_webhook_checks($1, $2)", older, limit)
        return [convert(dict(row), WebhookCheck) for row in rows]

    async def note_webhooks(self, workspace: WorkspaceId, subscriptions: list[dict[str, Any]]) -> bool:
        """Whether the provider sends updates where they have to come to."""
        return bool(await self._database.fetchval("SELECT note_webhooks($1, $2)", workspace, subscriptions))

    @asynccontextmanager
    async def _connection_of(self, workspace: WorkspaceId) -> AsyncIterator[None]:
        """Raises ``AtCapacity`` when too many calls of the workspace wait."""
        try:
            async with self._slots.slot(workspace):
                yield
        except QueueFull:
            raise AtCapacity("too many concurrent requests of this workspace; retry later") from None

    async def ping(self) -> None:
        """Passes when the database answers and can write."""
        await self._database.ping("SELECT check_writes()")


def _chat_of(change: dict[str, Any]) -> str:
    """A chat that somebody holds keeps no other from its changes."""
    return str(change["chat_id"])
