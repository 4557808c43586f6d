"""Watched: how soon the status page answers, and how late the audit stream is, while a long backlog is worked off.

All of the backlog was enqueued just now, so it fills the page's window, and the stream begins with it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from http import HTTPStatus

import aiohttp
from autopost_runtime.postgres.pool import Database

from autopost_bench.machine.server import BenchError, BenchServer, settled
from autopost_bench.machine.tenants import Tenant, owned, statement
from autopost_bench.programs.services import services_at
from autopost_bench.report.figures import Figures

TOKEN = "status-token-of-the-bench"  # noqa: S105  opens a page of the bench alone
EVERY = 0.2
"""Seconds between two bites."""
NEAR = 1000
"""Events that the stream may lack when the measurement begins: new ones come all the time."""

Work = Callable[[], Awaitable[int]]
"""Takes a bite out of the backlog; of how many deliveries."""


async def watch(server: BenchServer, tenant: Tenant, figures: Figures, work: Work) -> None:
    async with owned(tenant) as database:
        await database.execute(statement("told"), tenant.workspace_id)
        await database.execute(
            "SELECT issue_status_token($1, NULL, 'bench', '1 hour', 'bench', 'measured')",
            sha256(TOKEN.encode()).hexdigest(),
        )
        async with (
            services_at(tenant, None, "monitor") as stack,
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        ):
            await _relayed(server, database, figures)
            looks, lags = await _look(server, session, f"{stack.urls['monitor']}/status", database, work)
    figures.record("status.long_backlog", max(looks), "seconds")
    figures.record("relay.long_backlog", max(lags), "seconds")


async def _relayed(server: BenchServer, database: Database, figures: Figures) -> None:
    """Nobody has run a relay here before: it begins with the first event there is."""
    events = int(await database.fetchval("SELECT count(*) FROM events"))
    started = time.perf_counter()

    async def is_caught_up() -> bool:
        begun = int(await database.fetchval("SELECT count(*) FROM relay_state WHERE relay = 'audit'"))
        return begun > 0 and int(await database.fetchval("SELECT events FROM relay_lag()")) < NEAR

    await settled(is_caught_up, server.counts.relayed_within.total_seconds(), "the audit stream does not catch up")
    figures.record("relay.catch_up", events / (time.perf_counter() - started))


async def _look(
    server: BenchServer, session: aiohttp.ClientSession, url: str, database: Database, work: Work
) -> tuple[list[float], list[float]]:
    """Whoever looks does so while deliveries are claimed and committed, and events written."""
    looks, lags = [], []
    until = time.monotonic() + server.counts.watched.total_seconds()
    while time.monotonic() < until:
        started = time.monotonic()
        looking = asyncio.ensure_future(_seconds(session, url))
        await work()
        lags.append(await database.fetchval("SELECT seconds FROM relay_lag()"))
        looks.append(await looking)
        await asyncio.sleep(max(0.0, started + EVERY - time.monotonic()))
    return looks, lags


async def _seconds(session: aiohttp.ClientSession, url: str) -> float:
    started = time.monotonic()
    async with session.get(url) as answer:
        await answer.read()
    if answer.status != HTTPStatus.OK:
        raise BenchError(f"the status page was answered with {answer.status}")
    return time.monotonic() - started
