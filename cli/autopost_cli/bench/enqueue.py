"""Enqueue: one post per call into few and into many channels, with dedup on, over one connection."""

import time

from autopost_cli.bench.arena import Arena, BenchError
from autopost_cli.bench.drain import NAMES
from autopost_cli.bench.figures import Figures
from autopost_cli.bench.tenants import Tenant, Writer, enqueue, owned


async def measure(arena: Arena, figures: Figures) -> None:
    for name, channels in list(zip(NAMES, arena.counts.channels, strict=True))[:2]:
        arena.say(f"enqueue to {channels:,} channels")
        async with arena.tenant(channels) as tenant:
            figures.record(f"enqueue.{name}", await enqueued(tenant, arena.counts.enqueued))


async def enqueued(tenant: Tenant, deliveries: int) -> float:
    """Deliveries per second."""
    async with owned(tenant) as database:
        writer = await Writer.of(database, tenant)
        for post in writer.write(2):  # plans and caches of the one connection
            await enqueue(database, tenant, post)
        posts = writer.write(-(-deliveries // tenant.channels))
        started = time.perf_counter()
        made: list[int] = [(await enqueue(database, tenant, post))["enqueued"] for post in posts]
        seconds = time.perf_counter() - started
        again = await enqueue(database, tenant, posts[0])
    if sum(made) != len(posts) * tenant.channels or again["deduped"] != tenant.channels:
        raise BenchError(f"{sum(made)} deliveries of {len(posts)} posts; a repost gave {again}")
    return sum(made) / seconds
