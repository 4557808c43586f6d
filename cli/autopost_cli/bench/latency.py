"""Latency: from a POST to the provider's door when nothing else happens, beside the bare chain that does the same."""

import asyncio
import time

import aiohttp

from autopost_cli.bench import bare_chain
from autopost_cli.bench.arena import Arena, BenchError
from autopost_cli.bench.children import child
from autopost_cli.bench.figures import Figures, percentile
from autopost_cli.bench.receiver import Receiver, receiving
from autopost_cli.bench.services import Send, posting, services_at
from autopost_cli.bench.tenants import text

BREATH = 0.005
WARM_UP = 20
PATIENCE = 5.0


async def measure(arena: Arena, figures: Figures) -> None:
    """All repetitions in one call: the services are started once."""
    arena.say("latency: starting the services and the bare chain")
    async with (
        arena.tenant(1) as tenant,
        receiving() as provider,
        services_at(tenant, provider.url, "ingest", "dispatcher") as stack,
    ):
        nats_url = str(stack.backends.nats_url)
        await bare_chain.prepare(tenant.url, nats_url)
        where = (tenant.url, nats_url, provider.url)
        async with (
            child("bare_chain", "door", *where) as door,
            child("bare_chain", "caller", *where) as caller,
            aiohttp.ClientSession() as session,
        ):
            await caller.expect("ready")
            ours, bare = posting(session, stack.urls["ingest"], tenant), _bare(session, await door.read())
            for send in (ours, bare):
                await _latencies(send, provider, WARM_UP)
            for repetition in range(arena.counts.repetitions):
                arena.say(f"latency, {repetition + 1} of {arena.counts.repetitions}")
                for name, send in (("latency", ours), ("bare_chain", bare)):
                    found = await _latencies(send, provider, arena.counts.latencies)
                    for label, part in (("p50", 0.5), ("p99", 0.99)):
                        figures.record(f"{name}.{label}", percentile(found, part) * 1e3, "milliseconds")


def _bare(session: aiohttp.ClientSession, url: str) -> Send:
    async def send() -> int:
        async with session.post(url, json={"text": text(0)}) as answer:
            await answer.read()
            return answer.status

    return send


async def _latencies(send: Send, provider: Receiver, count: int) -> list[float]:
    """Seconds, one post at a time, with a breath between them."""
    found = []
    for _ in range(count):
        arrival = provider.next_arrival()
        started = time.monotonic()
        status = await send()
        if status != 202:
            raise BenchError(f"a post was answered with {status}")
        try:
            found.append(await asyncio.wait_for(arrival, PATIENCE) - started)
        except TimeoutError:
            raise BenchError(f"a post did not reach the provider within {PATIENCE:g} s") from None
        await asyncio.sleep(BREATH)
    return found
