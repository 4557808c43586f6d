"""The queue beside PgQueuer: enqueue and drain, in turns."""

from functools import partial

from autopost_cli.bench import peers_pgqueuer
from autopost_cli.bench.arena import Arena, vacuum
from autopost_cli.bench.drain import drain
from autopost_cli.bench.enqueue import enqueued
from autopost_cli.bench.figures import Figures
from autopost_cli.bench.turns import TURNS_EACH, in_turns


async def measure(arena: Arena, figures: Figures) -> None:
    await in_turns(figures, partial(_theirs, arena), partial(_ours, arena))


async def _theirs(arena: Arena) -> dict[str, float]:
    arena.say("PgQueuer")
    jobs = arena.counts.pgqueuer_jobs // TURNS_EACH
    async with arena.database() as url:
        enqueue = await peers_pgqueuer.enqueue(url, jobs)
        await vacuum(url)
        return {"pgqueuer.enqueue": enqueue, "pgqueuer.drain": await peers_pgqueuer.drain(url, jobs)}


async def _ours(arena: Arena) -> dict[str, float]:
    few, many, _ = arena.counts.channels
    deliveries = arena.counts.enqueued // TURNS_EACH
    rates = {}
    for name, channels in (("enqueue.few", few), ("enqueue.many", many)):
        arena.say(f"enqueue to {channels:,} channels")
        async with arena.tenant(channels) as tenant:
            rates[name] = await enqueued(tenant, deliveries)
    arena.say(f"drain over {few:,} channels")
    async with arena.tenant(few) as tenant:
        rates["drain.few"] = await drain(tenant, arena.counts.drained // TURNS_EACH)
    return rates
