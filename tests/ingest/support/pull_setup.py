"""Pull in tests: a site that serves sources, a replica that pulls them, queries for the result."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_network
from typing import Any
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_contracts.subjects import Topology
from autopost_ingest.pull.gateway import PullGateway
from autopost_ingest.pull.import_items import ImportLimits, Waker
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.pull_source import SourcePuller
from autopost_ingest.pull.scheduler import PullLimits, PullScheduler
from autopost_ingest.pull.secrets import PullSecrets
from autopost_ingest.pull.sources.fetch_document import Budget
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.fetch.addresses import Guard
from autopost_runtime.fetch.dns import Names
from autopost_runtime.fetch.fetch import Fetcher
from autopost_runtime.http.web import serve
from autopost_runtime.postgres.pool import open_database
from harness.databases import Database
from ingest.support.ingest_client import Ear

HERE = Guard(allow=(ip_network("127.0.0.0/8"),))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """Serves what the test puts there, and remembers who asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[web.Request] = []
        self.reached = asyncio.Event()
        self._over = asyncio.Event()
        self._pages: dict[str, Handler] = {}

    async def hang(self, _: web.Request) -> web.StreamResponse:
        """Answers when the test is over."""
        self.reached.set()
        await self._over.wait()
        return web.Response()

    def put(self, path: str, body: bytes | str, *, headers: Mapping[str, str] | None = None, status: int = 200) -> str:
        content = body.encode() if isinstance(body, str) else body

        async def answer(request: web.Request) -> web.StreamResponse:
            etag = (headers or {}).get("ETag")
            if etag and request.headers.get("If-None-Match") == etag:
                return web.Response(status=304)
            return web.Response(body=content, headers=headers, status=status)

        return self.handle(path, answer)

    def handle(self, path: str, handler: Handler) -> str:
        self._pages[path] = handler
        return self.url + path

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        return await self._pages[request.path](request)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Site"]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.serve)
        async with await serve(app, "127.0.0.1", 0) as site:
            self.url = site.url
            yield self
            self._over.set()


class Replica:
    """Pull as one process does it."""

    def __init__(self, puller: PullScheduler, ear: Ear, staged: asyncio.Event) -> None:
        self.puller = puller
        self.ear = ear
        self.staged = staged


class Pulls:
    """A workspace with two channels, and as many replicas as the test opens."""

    def __init__(self, database: Database, workspace: UUID) -> None:
        self.database = database
        self.workspace = workspace

    @classmethod
    async def create(cls, database: Database) -> "Pulls":
        workspace = await database.pool.fetchval("INSERT INTO workspaces (name) VALUES ('test') RETURNING workspace_id")
        for platform in ("telegram", "max"):
            await database.pool.execute(
                "INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group) "
                "VALUES ($1, $2, '-1', 'bot', 'bot')",
                *(workspace, platform),
            )
        return cls(database, workspace)

    async def add(
        self, source_id: str, kind: str, *, endpoint: bool = True, begins: Any = "all", **config: Any
    ) -> None:
        """``begins`` is its ``first``; ``None``: it says nothing of it."""
        config = {"first": begins, **config} if begins is not None else config
        await self.sql(
            "INSERT INTO pull_sources (workspace_id, source_id, kind, config_json) VALUES ($1, $2, $3, $4)",
            *(self.workspace, source_id, kind, msgspec.json.encode(config).decode()),
        )
        if endpoint:
            await self.sql(
                "INSERT INTO workspace_endpoints (workspace_id, kind, source_id) VALUES ($1, 'pull_source', $2)",
                *(self.workspace, source_id),
            )

    async def bind(self, name: str, secret_ref: str, sealed: bytes | None = None) -> None:
        await self.sql(
            "INSERT INTO credential_bindings (workspace_id, auth_ref, platform, secret_ref, sealed) "
            "VALUES ($1, $2, 'pull', $3, $4)",
            *(self.workspace, name, secret_ref, sealed),
        )

    @asynccontextmanager
    async def replica(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        budget: Budget | None = None,
        pace: PullLimits | None = None,
        limits: ImportLimits | None = None,
        reader: DocumentReader | None = None,
        names: Names | None = None,
        wrapped: Callable[[PullGateway], PullGateway] = lambda gateway: gateway,
    ) -> AsyncIterator[Replica]:
        config = ServiceConfig(database_url=self.database.url, database_role="autopost_ingest", database_pool=10)
        ear, staged = Ear(), asyncio.Event()
        async with open_database(config, "ingest") as pool, reader or DocumentReader(1) as reading:
            gateway = wrapped(PullGateway(pool))
            one = SourcePuller(
                gateway,
                PullSecrets(gateway, environment or {}),
                Fetcher(HERE, names=names),
                reading,
                Waker(ear, Topology(), staged),  # type: ignore[arg-type]
                budget or Budget(),
                limits or ImportLimits(),
            )
            yield Replica(PullScheduler(gateway, one, pace or PullLimits(poll=timedelta(milliseconds=20))), ear, staged)

    async def due(self) -> None:
        await self.sql("UPDATE pull_sources SET next_pull_at = clock_timestamp() - interval '1 second'")

    async def again(self, replica: Replica) -> None:
        await self.due()
        await replica.puller.round()

    async def sql(self, query: str, *args: Any) -> Any:
        return await self.database.pool.fetchval(query, *args)

    async def texts(self) -> list[str]:
        """As they will be shown in the first channel, in that order."""
        rows = await self.database.pool.fetch(
            "SELECT r.rendered_text AS text FROM deliveries d JOIN renderings r USING (workspace_id, rendering_id) "
            "JOIN channels c USING (workspace_id, channel_id) WHERE c.platform = 'telegram' "
            "ORDER BY d.created_at, d.delivery_id"
        )
        return [row["text"] for row in rows]

    async def refs(self) -> list[str]:
        rows = await self.database.pool.fetch("SELECT source_ref FROM pull_receipts ORDER BY source_ref")
        return [row["source_ref"] for row in rows]

    async def cursor(self) -> Any:
        return msgspec.json.decode(await self.sql("SELECT cursor_json::text FROM pull_cursors") or "null")

    async def error(self, source_id: str) -> Any:
        """How its last pull failed, and how often in a row; nothing when it did not."""
        row = await self.database.pool.fetchrow(
            "SELECT last_error ->> 'code' AS code, failures FROM pull_sources WHERE source_id = $1", source_id
        )
        assert row is not None
        return (row["code"], row["failures"]) if row["failures"] else None

    async def events(self, action: str) -> list[dict[str, Any]]:
        rows = await self.database.pool.fetch(
            "SELECT (error || meta)::text AS told FROM events WHERE action::text = $1 ORDER BY seq", action
        )
        return [msgspec.json.decode(row["told"]) for row in rows]

    async def stats(self) -> list[dict[str, Any]]:
        """Of every run, all of them over."""
        rows = await self.database.pool.fetch(
            "SELECT stats_json::text AS stats, finished_at FROM ingest_runs ORDER BY started_at"
        )
        assert all(row["finished_at"] for row in rows)
        return [msgspec.json.decode(row["stats"]) for row in rows]


def rss(*items: str) -> str:
    return (
        f'<rss version="2.0"><channel><title>t</title><link>https://a.example/</link>{"".join(items)}</channel></rss>'
    )


def entry(name: str | int, more: str = "") -> str:
    return f"<item><title>Title {name}</title><guid>{name}</guid>{more}</item>"


def numbered(count: int) -> str:
    """The newest first, as feeds are."""
    return rss(*(entry(f"{number:04}") for number in reversed(range(count))))
