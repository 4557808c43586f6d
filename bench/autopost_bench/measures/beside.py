"""The queue beside PgQueuer: enqueue and drain, in turns."""

from functools import partial

from autopost_bench.machine.server import BenchServer, vacuum
from autopost_bench.measures.drain import drain
from autopost_bench.measures.enqueue import enqueued
from autopost_bench.measures.turns import TURNS_EACH, in_turns
from autopost_bench.peers import pgqueuer as peers_pgqueuer
from autopost_bench.report.figures import Figures


async def measure(server: BenchServer, figures: Figures) -> None:
    await in_turns(figures, partial(_theirs, server), partial(_ours, server))


async def _theirs(server: BenchServer) -> dict[str, float]:
    server.say("PgQueuer")
    jobs = server.counts.pgqueuer_jobs // TURNS_EACH
    async with server.database() as url:
        enqueue = await peers_pgqueuer.enqueue(url, jobs)
        await vacuum(url)
        return {"pgqueuer.enqueue": enqueue, "pgqueuer.drain": await peers_pgqueuer.drain(url, jobs)}


async def _ours(server: BenchServer) -> dict[str, float]:
    few, many, _ = server.counts.channels
    deliveries = server.counts.enqueued // TURNS_EACH
    rates = {}
    for name, channels in (("enqueue.few", few), ("enqueue.many", many)):
        server.say(f"enqueue to {channels:,} channels")
        async with server.tenant(channels) as tenant:
            rates[name] = await enqueued(tenant, deliveries)
    server.say(f"drain over {few:,} channels")
    async with server.tenant(few) as tenant:
        rates["drain.few"] = await drain(tenant, server.counts.drained // TURNS_EACH)
    return rates
