"""Whom the bench posts for: a workspace, its channels, and posts of 500 bytes."""

import base64
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Profile
from autopost_ingest.posts.compile import compile_for
from autopost_ingest.posts.normalize import HASH_VERSION, NORMALIZATION_VERSION, normalize
from autopost_runtime.config.load import Secret, ServiceConfig
from autopost_runtime.postgres.identity import new_id
from autopost_runtime.postgres.pool import Database, open_database
from autopost_runtime.secrets.sealing import Label, SealingKeys
from msgspec import Struct

TEXT = 500
TOKEN = Secret("1000003:bench-token-that-opens-nothing")
KEY = bytes(32)
ENVIRONMENT = {"AUTOPOST_SECRETS_KEY": base64.b64encode(KEY).decode()}
"""Of the services: the token is sealed, because of sealed tokens alone the bot is not asked for."""

Post = dict[str, Any]


class Rates(Struct, frozen=True):
    group: float
    channel: float
    max_parallel: int


ALL_GATES_ON = Rates(group=1_000_000, channel=1_000_000, max_parallel=10_000)
"""The code runs, the limits do not bind."""


class Tenant(Struct, frozen=True, kw_only=True):
    url: str
    workspace_id: WorkspaceId
    endpoint_id: EndpointId
    channels: int

    @property
    def secret(self) -> str:
        """Opens the endpoint; see sql/tenant.sql."""
        return str(self.workspace_id)

    def at(self, url: str) -> "Tenant":
        return msgspec.structs.replace(self, url=url)


def statement(name: str) -> str:
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text()


async def make_tenant(
    connection: "asyncpg.Connection[asyncpg.Record]",
    workspace: WorkspaceId,
    channels: int,
    rates: Rates,
    *,
    first: int = 0,
) -> Tenant:
    """``first``: the number after which its chats are numbered."""
    endpoint = EndpointId(uuid4())
    await connection.execute(
        statement("tenant"),
        *(workspace, endpoint, channels, rates.group, rates.channel, rates.max_parallel, first, sealed(workspace)),
    )
    return Tenant(url="", workspace_id=workspace, endpoint_id=endpoint, channels=channels)


def sealed(workspace: WorkspaceId, platform: str = "telegram") -> bytes:
    return SealingKeys(KEY).seal(TOKEN, Label(str(workspace), platform, "bench"))


@contextlib.asynccontextmanager
async def owned(tenant: Tenant) -> AsyncIterator[Database]:
    """A pool as the services have it, but of the schema's owner."""
    config = ServiceConfig(database_url=tenant.url, database_pool=32, command_timeout=timedelta(minutes=10))
    async with open_database(config, "bench") as database:
        yield database


def text(number: int) -> str:
    start = f"{new_id()} {number} "
    return start + "x" * (TEXT - len(start))


class Writer:
    """Compiles posts as ingest does, before the clock starts."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._profiles = tuple(profiles)

    @classmethod
    async def of(cls, database: Database, tenant: Tenant) -> "Writer":
        answer = await enqueue(database, tenant, cls(())._write(0))
        return cls(msgspec.convert(answer["missing_profiles"], list[Profile]))

    def write(self, count: int, calls: int = 1) -> list[Post]:
        """``calls``: how many provider calls each of them takes."""
        return [self._write(number, calls) for number in range(count)]

    def _write(self, number: int, calls: int = 1) -> Post:
        normalized = normalize(PostRequest(text=text(number)))
        renderings = [_repeated(rendering, calls) for rendering in compile_for(normalized, self._profiles)]
        return {
            "content_hash": normalized.content_hash,
            "hash_version": HASH_VERSION,
            "normalization_version": NORMALIZATION_VERSION,
            "payload": msgspec.to_builtins(normalized.content) | {"type": normalized.content.type},
            "tags": (),
            "routing": {"channels": (), "channel_tags": ()},
            "source": {"kind": "push"},
            "run_id": RunId(new_id()),
            "renderings": renderings,
        }


def _repeated(rendering: dict[str, Any], calls: int) -> dict[str, Any]:
    """The same text in so many parts."""
    if calls == 1:
        return rendering
    plan = rendering["plan"]
    return rendering | {"plan": msgspec.structs.replace(plan, parts=plan.parts * calls), "calls": calls}


async def enqueue(database: Database, tenant: Tenant, post: Post) -> dict[str, Any]:
    answer: dict[str, Any] = await database.fetchval(
        "SELECT enqueue_messages_and_deliveries($1, $2, 'push', $3)", tenant.workspace_id, tenant.endpoint_id, post
    )
    return answer


async def enqueue_all(database: Database, tenant: Tenant, posts: Sequence[Post]) -> list[dict[str, Any]]:
    """In one call."""
    query = "SELECT enqueue_messages_and_deliveries_batch($1, $2, 'push', $3)"
    answers: list[dict[str, Any]] = await database.fetchval(query, tenant.workspace_id, tenant.endpoint_id, posts)
    return answers


async def add_backlog(database: Database, tenant: Tenant, posts: int, channels: str, copies: int = 1) -> None:
    """Set-based, where one post at a time would take minutes; ``channels`` is a pattern of their targets."""
    post = (await Writer.of(database, tenant)).write(1)[0]
    rendering = post["renderings"][0]
    plan = (rendering["plan_hash"], rendering["rendered_text"], rendering["plan"])
    await database.execute(statement("backlog"), tenant.workspace_id, posts, channels, post["payload"], *plan, copies)


async def add_history(database: Database, tenant: Tenant, posts: int) -> None:
    post = (await Writer.of(database, tenant)).write(1)[0]
    async with database.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(
            statement("history"), tenant.workspace_id, posts, post["payload"], post["renderings"][0]["plan_hash"]
        )
