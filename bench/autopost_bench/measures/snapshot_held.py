"""Drain beside somebody who holds an old snapshot, so that nothing dead can be cleared away."""

import contextlib
from collections.abc import AsyncIterator

from autopost_bench.machine.server import BenchServer, connected
from autopost_bench.measures.drain import drain
from autopost_bench.report.figures import Figures


async def measure(server: BenchServer, figures: Figures) -> None:
    deliveries = server.counts.snapshot_drained
    server.say(f"drain of {deliveries:,}")
    async with server.tenant(server.counts.channels[0]) as tenant:
        figures.record("snapshot.free", await drain(tenant, deliveries))
    server.say(f"drain of {deliveries:,} beside an old snapshot")
    async with server.tenant(server.counts.channels[0]) as tenant, _snapshot(tenant.url):
        figures.record("snapshot.held", await drain(tenant, deliveries))


@contextlib.asynccontextmanager
async def _snapshot(url: str) -> AsyncIterator[None]:
    async with connected(url) as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.fetchval("SELECT count(*) FROM workspaces")
        yield
