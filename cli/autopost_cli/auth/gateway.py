"""The database calls of `autopost auth`, as role `autopost_operator`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
from msgspec import Struct, convert, json

SESSION = {"application_name": "autopost-auth", "role": "autopost_operator", "timezone": "UTC"}

Connection: TypeAlias = "asyncpg.Connection[Any]"


class Binding(Struct, frozen=True, kw_only=True):
    """The new place of a secret."""

    secret_ref: str
    sealed: bytes | None = None
    bot_id: str | None = None


class CredentialInfo(Struct, frozen=True, kw_only=True):
    """The place of a secret; never the secret itself."""

    platform: str
    auth_ref: str
    secret_ref: str
    bot_id: str | None
    rotated_at: datetime


async def bind_credential(
    database_url: str, workspace: UUID, platform: str, auth_ref: str, binding: Binding, operator: str, reason: str
) -> dict[str, Any]:
    async with _connected(database_url) as connection:
        answer = await connection.fetchval(
            "SELECT bind_credential($1, $2, $3, $4, $5, $6, $7, $8)",
            workspace,
            platform,
            auth_ref,
            binding.secret_ref,
            binding.sealed,
            binding.bot_id,
            operator,
            reason,
        )
        return json.decode(answer, type=dict[str, Any])


async def list_credentials(database_url: str, workspace: UUID) -> list[CredentialInfo]:
    async with _connected(database_url) as connection:
        rows = await connection.fetch("SELECT * FROM list_credentials($1)", workspace)
        return [convert(dict(row), CredentialInfo) for row in rows]


@asynccontextmanager
async def _connected(database_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(database_url, timeout=10, server_settings=SESSION)
    try:
        yield connection
    finally:
        await connection.close()
