"""procrastinate with its best settings: a psycopg pool, ten jobs at a time, batches of 1,000 when deferring.

The clock runs from its first job to the end of its worker.
"""

import logging
import time

from procrastinate import App, PsycopgConnector
from procrastinate.types import JSONDict

from autopost_bench.machine.server import BenchError, BenchServer, vacuum
from autopost_bench.machine.tenants import TEXT
from autopost_bench.report.figures import Figures

DEFERRED_AT_ONCE = 1_000
CONCURRENCY = 10


async def measure(server: BenchServer, figures: Figures) -> None:
    server.say("procrastinate")
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    async with server.database() as url:
        done, first, jobs = 0, 0.0, server.counts.procrastinate_jobs
        app = App(connector=PsycopgConnector(conninfo=url))

        @app.task(name="noop")
        async def noop(payload: str) -> None:
            nonlocal done, first
            first = first or time.perf_counter()
            done += 1

        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            started = time.perf_counter()
            for start in range(0, jobs, DEFERRED_AT_ONCE):
                job: JSONDict = {"payload": "x" * TEXT}
                await noop.batch_defer_async(*[job] * min(DEFERRED_AT_ONCE, jobs - start))
            figures.record("procrastinate.enqueue", jobs / (time.perf_counter() - started))
            await vacuum(url)
            await app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False)
            seconds = time.perf_counter() - first
        if done != jobs:
            raise BenchError(f"procrastinate ran {done} of {jobs} jobs")
        figures.record("procrastinate.drain", done / seconds)
