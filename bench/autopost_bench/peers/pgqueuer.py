"""PgQueuer with its best settings: one consumer on one asyncpg connection, batches of 500, its own autovacuum advice.

The clock runs from its first job to the end of its drain, so neither its start nor its first fetch is counted.
"""

import time
from datetime import timedelta

from pgqueuer.core.applications import PgQueuer
from pgqueuer.domain.models import Job
from pgqueuer.domain.types import QueueExecutionMode
from pgqueuer.queries import Queries

from autopost_bench.machine.server import BenchError, connected
from autopost_bench.machine.tenants import TEXT

ENQUEUED_AT_ONCE = 1_000
FETCHED_AT_ONCE = 500


async def enqueue(url: str, jobs: int) -> float:
    async with connected(url) as connection:
        queries = Queries.from_asyncpg_connection(connection)
        await queries.install()
        await queries.optimize_autovacuum()
        batch = min(ENQUEUED_AT_ONCE, jobs)
        payloads: list[bytes | None] = [b"x" * TEXT] * batch
        started = time.perf_counter()
        for _ in range(jobs // batch):
            await queries.enqueue(["noop"] * batch, payloads, [0] * batch)
        return (jobs // batch) * batch / (time.perf_counter() - started)


async def drain(url: str, jobs: int) -> float:
    done, first = 0, 0.0
    async with connected(url) as connection:
        queue = PgQueuer.from_asyncpg_connection(connection)

        @queue.entrypoint("noop")
        async def noop(job: Job) -> None:
            nonlocal done, first
            first = first or time.perf_counter()
            done += 1

        await queue.qm.run(
            batch_size=FETCHED_AT_ONCE, dequeue_timeout=timedelta(seconds=1), mode=QueueExecutionMode.drain
        )
        seconds = time.perf_counter() - first
    if done != jobs - jobs % min(ENQUEUED_AT_ONCE, jobs):
        raise BenchError(f"PgQueuer ran {done} of {jobs} jobs")
    return done / seconds
