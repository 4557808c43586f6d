"""Enqueue: posts into few and into many channels, with dedup on, over one connection.

A thousand deliveries a call, as the peer is given a thousand jobs a call: one post to many channels, to few as many
posts as it takes.
"""

import time

from autopost_bench.machine.server import BenchError
from autopost_bench.machine.tenants import Tenant, Writer, enqueue, enqueue_all, owned

CALL = 1_000


async def enqueued(tenant: Tenant, deliveries: int) -> float:
    """Deliveries per second."""
    async with owned(tenant) as database:
        writer = await Writer.of(database, tenant)
        for post in writer.write(2):  # plans and caches of the one connection
            await enqueue(database, tenant, post)
        posts = writer.write(-(-deliveries // tenant.channels))
        together = max(1, CALL // tenant.channels)
        calls = [posts[start : start + together] for start in range(0, len(posts), together)]
        started = time.perf_counter()
        answers = [answer for call in calls for answer in await enqueue_all(database, tenant, call)]
        seconds = time.perf_counter() - started
        again = await enqueue(database, tenant, posts[0])
    made: int = sum(answer["enqueued"] for answer in answers)
    if made != len(posts) * tenant.channels or again["deduped"] != tenant.channels:
        raise BenchError(f"{made} deliveries of {len(posts)} posts; a repost gave {again}")
    return made / seconds
