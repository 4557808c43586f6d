"""The calls of publications into the database: one method per function, no other SQL."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import asyncpg
from autopost_contracts.ids import ChannelId, EndpointId, PublicationId, WorkspaceId
from autopost_contracts.plan import Profile
from autopost_runtime.postgres.pool import Database
from msgspec import Struct, convert

BeginVerdict = Literal["begun", "already", "stale", "plan_changed", "channel_disabled", "content"]


class Due(Struct, frozen=True, kw_only=True):
    """A publication that is due, or whose command was lost."""

    workspace_id: WorkspaceId
    publication_id: PublicationId
    version: int
    traceparent: str | None = None


class Started(Struct, frozen=True, kw_only=True):
    """Result of ``due_publications``."""

    due: tuple[Due, ...]
    missed: int
    next_in: float | None
    """Seconds until the next one, by the clock of the database."""


class Command(Struct, frozen=True, kw_only=True):
    workspace_id: WorkspaceId
    command_id: UUID
    msg_id: str
    subject: str
    payload: str
    traceparent: str | None


class Publication(Struct, frozen=True, kw_only=True):
    """What compiling and beginning need of it; ``document`` is all of it, as callers see it."""

    publication_id: PublicationId
    channel_id: ChannelId
    version: int
    status: str
    creative_draft: dict[str, Any]
    trace_id: str | None
    document: dict[str, Any]


class Prepared(Struct, frozen=True, kw_only=True):
    publication: Publication
    profile: Profile | None


class PublicationAccess(Struct, frozen=True, kw_only=True):
    """What an endpoint of publications may do, and its name in events."""

    name: str
    scopes: frozenset[str]


class PublicationGateway:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def due_publications(self, limit: int) -> Started:
        return convert(await self._database.fetchval("SELECT due_publications($1)", limit), Started)

    async def orphaned_publications(self, older: timedelta, limit: int) -> list[Due]:
        rows = await self._database.fetch("SELECT * FROM orphaned_publications($1, $2)", older, limit)
        return [convert(dict(row), Due) for row in rows]

    async def unpublished_commands(self, older: timedelta, limit: int) -> list[Command]:
        rows = await self._database.fetch("SELECT * FROM unpublished_commands($1, $2)", older, limit)
        return [convert(dict(row), Command) for row in rows]

    async def commands_published(self, commands: Sequence[Command]) -> None:
        await self._database.fetchval(
            "SELECT commands_published($1, $2)",
            [command.workspace_id for command in commands],
            [command.command_id for command in commands],
        )

    async def read_publication(self, workspace: WorkspaceId, publication: PublicationId) -> Prepared | None:
        found = await self._database.fetchval("SELECT read_publication($1, $2)", workspace, publication)
        if found is None:
            return None
        document = found["publication"]
        return Prepared(
            publication=convert({**document, "document": document}, Publication),
            profile=convert(found["profile"], Profile | None),
        )

    async def begin_publication(
        self, workspace: WorkspaceId, publication: PublicationId, version: int, post: dict[str, Any]
    ) -> BeginVerdict:
        answer = await self._database.fetchval(
            "SELECT begin_publication($1, $2, $3, $4)",
            workspace,
            publication,
            version,
            post,
        )
        verdict: BeginVerdict = answer["verdict"]
        return verdict

    async def publication_access(self, workspace: WorkspaceId, endpoint: EndpointId) -> PublicationAccess | None:
        found = await self._database.fetchval("SELECT publication_access($1, $2)", workspace, endpoint)
        return convert(found, PublicationAccess | None)

    async def draft_publication(self, workspace: WorkspaceId, given: dict[str, Any], by: str) -> dict[str, Any]:
        return await self._answer("draft_publication", workspace, given, by)

    async def edit_publication(
        self, workspace: WorkspaceId, publication: PublicationId, version: int, given: dict[str, Any], by: str
    ) -> dict[str, Any]:
        return await self._answer("edit_publication", workspace, publication, version, given, by)

    async def approve_publication(
        self, workspace: WorkspaceId, publication: PublicationId, version: int, plan: dict[str, Any], by: str
    ) -> dict[str, Any]:
        return await self._answer("approve_publication", workspace, publication, version, plan, by)

    async def schedule_publication(
        self,
        workspace: WorkspaceId,
        publication: PublicationId,
        version: int,
        at: datetime,
        timezone: str | None,
        by: str,
    ) -> dict[str, Any]:
        return await self._answer("schedule_publication", workspace, publication, version, at, timezone, by)

    async def unschedule_publication(
        self, workspace: WorkspaceId, publication: PublicationId, version: int, by: str
    ) -> dict[str, Any]:
        return await self._answer("unschedule_publication", workspace, publication, version, by)

    async def cancel_publication(
        self, workspace: WorkspaceId, publication: PublicationId, version: int | None, by: str, reason: str
    ) -> dict[str, Any]:
        given = (workspace, publication, version, by, reason)
        with suppress(asyncpg.SerializationError):  # its delivery was made at that moment
            return await self._answer("cancel_publication", *given)
        return await self._answer("cancel_publication", *given)

    async def retry_publication(
        self, workspace: WorkspaceId, publication: PublicationId, version: int, by: str, reason: str
    ) -> dict[str, Any]:
        return await self._answer("retry_publication", workspace, publication, version, by, reason)

    async def resolve_publication(
        self,
        workspace: WorkspaceId,
        publication: PublicationId,
        version: int,
        decision: str,
        by: str,
        reason: str,
        provider_message_id: str | None,
    ) -> dict[str, Any]:
        return await self._answer(
            "resolve_publication", workspace, publication, version, decision, by, reason, provider_message_id
        )

    async def list_publications(
        self,
        workspace: WorkspaceId,
        begin: datetime | None,
        end: datetime | None,
        statuses: list[str] | None,
        channel: ChannelId | None,
        after: PublicationId | None,
        limit: int,
    ) -> list[dict[str, Any]]:
        query = "SELECT list_publications($1, $2, $3, $4, $5, $6, $7)"
        answer = await self._database.fetchval(query, workspace, begin, end, statuses, channel, after, limit)
        return list(answer)

    async def _answer(self, function: str, *arguments: Any) -> dict[str, Any]:
        places = ", ".join(f"${place}" for place in range(1, len(arguments) + 1))
        query = f"SELECT {function}({places})"
        return dict(await self._database.fetchval(query, *arguments))
