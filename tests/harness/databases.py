"""A database per test: cloned from a template that was migrated, or also seeded, once per run."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from harness.statistics import connection_class

MIGRATED = "template_migrated"
SEEDED = "template_seeded"
EMPTY = "template0"


def at(server: str, database: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{database}"))


async def make_migrated(server: str) -> str:
    from autopost_cli.schema.migrate import migrate_up  # only here: a broken migration fails its own tests, not all

    await _create(server, MIGRATED, template=EMPTY)
    await migrate_up(at(server, MIGRATED))
    await _close(server, MIGRATED)
    return MIGRATED


async def make_seeded(server: str, migrated: str) -> str:
    from autopost_cli.schema.seed import seed

    await _create(server, SEEDED, template=migrated)
    await seed(at(server, SEEDED))
    await _close(server, SEEDED)
    return SEEDED


class Database:
    """A database of this test's own; ``pool`` and every connection are closed with the test."""

    def __init__(self, url: str, pool: "asyncpg.Pool[asyncpg.Record]", connections: contextlib.AsyncExitStack) -> None:
        self.url = url
        self.pool = pool
        self._connections = connections

    async def connect(self) -> "asyncpg.Connection[asyncpg.Record]":
        connection = await asyncpg.connect(self.url, command_timeout=30, connection_class=connection_class())
        self._connections.push_async_callback(_end, connection)
        return connection


@contextlib.asynccontextmanager
async def cloned(server: str, template: str) -> AsyncIterator[Database]:
    name = f"test_{uuid4().hex[:12]}"
    admin = await asyncpg.connect(server)
    try:
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        async with _opened(at(server, name)) as database:
            yield database
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await admin.close()


@contextlib.asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Database]:
    async with contextlib.AsyncExitStack() as connections:
        pool = await asyncpg.create_pool(
            url, min_size=0, max_size=20, command_timeout=30, connection_class=connection_class()
        )
        connections.push_async_callback(_end, pool)
        yield Database(url, pool, connections)


async def _end(held: "asyncpg.Connection[asyncpg.Record] | asyncpg.Pool[asyncpg.Record]") -> None:
    """A test that left something running must not hang its own ending."""
    try:
        await asyncio.wait_for(held.close(), timeout=2)
    except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        held.terminate()


async def _create(server: str, name: str, template: str) -> None:
    async with _admin(server) as admin:
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")


async def _close(server: str, name: str) -> None:
    """A template with a connection to it cannot be cloned."""
    async with _admin(server) as admin:
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")


@contextlib.asynccontextmanager
async def _admin(server: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(server)
    try:
        yield connection
    finally:
        await connection.close()
