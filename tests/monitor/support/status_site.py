"""A status page with two workspaces, a token for each of them and one for the operator."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any
from uuid import UUID

import httpx
from autopost_monitor.__main__ import status_app
from autopost_monitor.config import MonitorConfig
from autopost_runtime.http.web import serve
from autopost_runtime.postgres.pool import open_database
from db.support.builders import Tenant, permanent
from db.support.operators import Operator, dead
from harness.databases import Database
from harness.http_client import http_client

OPERATOR, OURS, THEIRS = "operator-token-of-the-test", "our-token-of-the-test-0", "their-token-of-the-test"


class Site:
    def __init__(self, http: httpx.AsyncClient, ours: Tenant, theirs: Tenant) -> None:
        self.http, self.ours, self.theirs = http, ours, theirs

    async def get(self, path: str, token: str | None = None, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self.http.get(path, headers=headers, **options)

    async def report(self, token: str = OURS, **query: str) -> dict[str, Any]:
        answer = await self.get("/v1/status", token, params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


async def issue(database: Database, token: str, workspace: UUID | None, lifetime: str = "1 day") -> None:
    await database.pool.execute(
        "SELECT issue_status_token($1, $2, $3, $4::text::interval, 'ann', 'test')",
        *(sha256(token.encode()).hexdigest(), workspace, token, lifetime),
    )


@asynccontextmanager
async def status_site(database: Database) -> AsyncIterator[Site]:
    ours, theirs = await Tenant.create(database.pool), await Tenant.create(database.pool)
    for tenant, name in ((ours, "ours"), (theirs, "theirs")):
        await database.pool.execute(
            "UPDATE workspaces SET name = $1 WHERE workspace_id = $2", f"workspace-{name}", tenant.workspace
        )
    for token, workspace in ((OPERATOR, None), (OURS, ours.workspace), (THEIRS, theirs.workspace)):
        await issue(database, token, workspace)
    config = MonitorConfig(database_url=database.url)
    async with (
        open_database(config, "monitor") as opened,
        await serve(status_app(opened), "127.0.0.1", 0) as listening,
        http_client(base_url=listening.url, timeout=10) as http,
    ):
        yield Site(http, ours, theirs)


async def trouble(tenant: Tenant, name: str) -> None:
    """Something of everything that the page shows."""
    channel = await tenant.channel(title=f"channel-{name}", rate_group=f"group-{name}")
    await dead(tenant, channel, 2)
    await tenant.backlog(channel, 1)
    await tenant.commit(*(permanent(claim, code=f"code-{name}") for claim in await tenant.claim()))
    await tenant.backlog(channel, 3)
    await tenant.group(27, name=f"group-{name}")
    await Operator(tenant).pause(channel)
    await tenant.db.execute("""SELECT evaluate_alerts('{"dead": 1}')""")
