"""A lone post, from its webhook to the call: alone, and beside 200 tenants who send all that their rates allow."""

import aiohttp

from autopost_bench.machine.server import BenchServer, connected
from autopost_bench.measures.busy_tenants import TenantsCase, make_busy
from autopost_bench.measures.latency import WARM_UP, latencies, posting
from autopost_bench.programs.receiver import receiving
from autopost_bench.programs.services import services_at
from autopost_bench.report.figures import Figures, percentile

BUSY = TenantsCase(name="busy", workspaces=200, rate=27)
SECONDS_EACH = 0.05
"""How long a post takes at most here, with the breath after it."""


async def measure(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: the services are started once."""
    for _ in range(server.counts.tenant_repetitions):
        server.say("latency alone and beside 200 busy tenants")
        async with (
            server.tenant(1) as tenant,
            receiving() as provider,
            services_at(tenant, provider.url, "ingest", "dispatcher") as stack,
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {tenant.secret}"}) as session,
            connected(tenant.url) as connection,
        ):
            chat = str(await connection.fetchval("SELECT target_id FROM channels"))
            send = posting(session, f"{stack.urls['ingest']}/v1/posts")
            count = server.counts.latencies
            await latencies(send, provider, WARM_UP, chat)
            found = {"alone": await latencies(send, provider, count, chat)}
            await make_busy(tenant, BUSY, 10 + count * SECONDS_EACH)
            await latencies(send, provider, WARM_UP, chat)
            found["beside"] = await latencies(send, provider, count, chat)
            for name, seconds in found.items():
                for label, part in (("p50", 0.5), ("p99", 0.99)):
                    figures.record(f"tenants.{name}.{label}", percentile(seconds, part) * 1e3, "milliseconds")
