"""One side of a comparison of two checkouts: run by the interpreter of each, with what that checkout has installed.

So it uses nothing that the other one may lack. Prints one JSON object: deliveries per second, and milliseconds.
"""

import asyncio
import contextlib
import json
import sys
from statistics import median

from autopost_adapters.registry import adapters
from autopost_dispatcher.config import DispatcherConfig
from autopost_runtime.http.client import HttpClient
from autopost_runtime.lifecycle.service import collect_seldom
from msgspec.structs import replace

from autopost_bench.counts import QUICK, Counts
from autopost_bench.machine.server import BenchServer
from autopost_bench.machine.tenants import Tenant
from autopost_bench.measures import latency
from autopost_bench.measures.drain import drain
from autopost_bench.programs.children import child
from autopost_bench.report.figures import Figures

CHANNELS = 40


async def run(counts: Counts) -> dict[str, float]:
    found, figures = {}, Figures()
    async with BenchServer(counts) as server:
        async with server.tenant(CHANNELS) as tenant:
            found["noop"] = await drain(tenant, counts.drained)
        async with server.tenant(CHANNELS) as tenant:
            found["http"] = await _http(tenant, counts)
        await latency.measure(server, figures)
    found["call"] = median(figures.values("latency.p50"))
    return found


async def _http(tenant: Tenant, counts: Counts) -> float:
    limit = DispatcherConfig(database_url="").concurrency
    async with child("receiver") as provider, HttpClient(limit=limit) as http:
        url = await provider.read()
        timeout = DispatcherConfig(database_url="").provider_timeout
        return await drain(tenant, counts.called, adapters(http, telegram_url=url, max_url=url, timeout=timeout))


if __name__ == "__main__":
    import uvloop

    drained, called, latencies = map(int, sys.argv[1:])
    collect_seldom()
    with contextlib.redirect_stdout(sys.stderr), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(run(replace(QUICK, drained=drained, called=called, latencies=latencies, repetitions=1)))
    print(json.dumps(found))
