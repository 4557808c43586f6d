"""Replicas of the bot's HTTP service in this process, on a real Postgres and a real NATS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
from autopost_bot.gateway import Gateway
from autopost_bot.http import application
from autopost_bot.stream.hub import Hub
from autopost_bot.stream.serve import StreamTimes
from autopost_runtime.http.web import Site, serve
from autopost_runtime.lifecycle.service import ServiceConfig
from autopost_runtime.nats.bus import Bus, open_bus
from autopost_runtime.postgres.pool import open_database
from harness.databases import Database
from harness.http_client import http_client

WORKSPACE = "5f000000-0000-4000-8000-000000000002"
FOREIGN = "0de00000-0000-4000-8000-000000000001"
SECRET = "shop-api-secret-for-development"
BEARER = {"Authorization": f"Bearer {SECRET}"}
CHAT = "7"


class Replica:
    def __init__(self, site: Site, hub: Hub, bus: Bus, http: httpx.AsyncClient) -> None:
        self.site, self.hub, self.bus, self.http = site, hub, bus, http

    @property
    def url(self) -> str:
        return self.site.url

    async def start(self, action: str = "a", **fields: Any) -> httpx.Response:
        return await self.act("start", action, **{"actionType": "summarize", **fields})

    async def update(self, action: str = "a", status: str = "done", **fields: Any) -> httpx.Response:
        return await self.act("update", action, status=status, **fields)

    async def act(self, call: str, action: str, **fields: Any) -> httpx.Response:
        body = {"workspaceId": WORKSPACE, "chatId": CHAT, "actionId": action, **fields}
        return await self.http.post(f"{self.url}/api/chat/actions/{call}", json=body, headers=BEARER)

    async def list(self, chat: str = CHAT, **query: str) -> httpx.Response:
        asked = {"workspaceId": WORKSPACE, "chatId": chat, **query}
        return await self.http.get(f"{self.url}/api/chat/actions", params=asked, headers=BEARER)

    async def ticket(self, chat: str = CHAT) -> str:
        answer = await self.http.post(f"{self.url}/api/chats/{chat}/tickets", headers=BEARER)
        return str(answer.json()["ticket"])

    def events(self, chat: str = CHAT) -> str:
        return f"{self.url}/api/chats/{chat}/events"


@asynccontextmanager
async def replica(
    database: Database,
    nats_url: str | None,
    namespace: str,
    *,
    stream_clients: int = 2000,
    cors_origins: tuple[str, ...] = (),
    times: StreamTimes | None = None,
    poll: timedelta = timedelta(seconds=30),
    poll_when_away: timedelta = timedelta(milliseconds=100),
) -> AsyncIterator[Replica]:
    config = ServiceConfig(
        database_url=database.url,
        database_role="autopost_bot",
        database_pool=10,
        nats_url=nats_url,
        nats_namespace=namespace,
    )
    async with open_database(config, "bot") as pool, open_bus(config, "bot") as bus, http_client(timeout=30) as http:
        gateway = Gateway(pool, config.database_pool)
        hub = Hub(gateway, bus)
        tasks = [
            asyncio.create_task(bus.listen(bus.topology.chats, hub.on_wakeup)),
            asyncio.create_task(hub.run(poll, poll_when_away)),
        ]
        app = application(gateway, bus, hub, stream_clients=stream_clients, cors_origins=cors_origins, times=times)
        limits = {"connections": stream_clients + 500, "connections_per_address": stream_clients + 500}
        async with await serve(app, "127.0.0.1", 0, **limits) as site:
            yield Replica(site, hub, bus, http)
            hub.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def lift_rate(database: Database) -> None:
    await database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL WHERE kind = 'bot_api'")
