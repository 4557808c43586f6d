"""Drain beside somebody who holds an old snapshot, so that nothing dead can be cleared away."""

import contextlib
from collections.abc import AsyncIterator

from autopost_cli.bench.arena import Arena, connected
from autopost_cli.bench.drain import drain
from autopost_cli.bench.figures import Figures


async def measure(arena: Arena, figures: Figures) -> None:
    deliveries = arena.counts.snapshot_drained
    arena.say(f"drain of {deliveries:,}")
    async with arena.tenant(arena.counts.channels[0]) as tenant:
        figures.record("snapshot.free", await drain(tenant, deliveries))
    arena.say(f"drain of {deliveries:,} beside an old snapshot")
    async with arena.tenant(arena.counts.channels[0]) as tenant, _snapshot(tenant.url):
        figures.record("snapshot.held", await drain(tenant, deliveries))


@contextlib.asynccontextmanager
async def _snapshot(url: str) -> AsyncIterator[None]:
    async with connected(url) as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.fetchval("SELECT count(*) FROM workspaces")
        yield
