"""Latency from a POST, or from the wakeup after it, to the call at an idle provider, beside the bare chain."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

import aiohttp
import nats
from autopost_contracts.subjects import Topology

from autopost_bench.machine.server import BenchError, BenchServer
from autopost_bench.machine.tenants import Tenant, Writer, enqueue, owned, text
from autopost_bench.programs import bare_chain
from autopost_bench.programs.children import child
from autopost_bench.programs.receiver import Receiver, receiving
from autopost_bench.programs.services import services_at
from autopost_bench.report.figures import Figures, percentile

BREATH = 0.005
WARM_UP = 20
PATIENCE = 5.0

Send = Callable[[], Awaitable[float]]
"""Does what leads to one call; when its time began."""


async def measure(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: the services are started once."""
    server.say("latency: starting the services and the bare chain")
    async with (
        server.tenant(1) as tenant,
        receiving() as provider,
        services_at(tenant, provider.url, "ingest", "dispatcher") as stack,
    ):
        nats_url = str(stack.backends.nats_url)
        await bare_chain.prepare(tenant.url, nats_url)
        where = (tenant.url, nats_url, provider.url)
        async with (
            child("bare_chain", "webhook", *where) as webhook,
            child("bare_chain", "caller", *where) as caller,
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {tenant.secret}"}) as session,
            waking(tenant, nats_url) as wake,
        ):
            await caller.expect("ready")
            chains = {
                "latency": posting(session, f"{stack.urls['ingest']}/v1/posts"),
                "wakeup": wake,
                "bare_chain": posting(session, await webhook.read()),
            }
            for send in chains.values():
                await latencies(send, provider, WARM_UP)
            for repetition in range(server.counts.repetitions):
                server.say(f"latency, {repetition + 1} of {server.counts.repetitions}")
                for name, send in chains.items():
                    found = await latencies(send, provider, server.counts.latencies)
                    for label, part in (("p50", 0.5), ("p99", 0.99)):
                        figures.record(f"{name}.{label}", percentile(found, part) * 1e3, "milliseconds")


def posting(session: aiohttp.ClientSession, url: str) -> Send:
    """One post of its own through the HTTP API, from before the request."""

    async def send() -> float:
        started = time.monotonic()
        async with session.post(url, json={"text": text(0)}) as answer:
            await answer.read()
        if answer.status != HTTPStatus.ACCEPTED:
            raise BenchError(f"a post was answered with {answer.status}")
        return started

    return send


@contextlib.asynccontextmanager
async def waking(tenant: Tenant, nats_url: str) -> AsyncIterator[Send]:
    """One post that is in the queue already, from its wakeup."""
    subject = Topology().wakeup_dispatch(tenant.workspace_id)
    client = await nats.connect(nats_url)
    try:
        async with owned(tenant) as database:
            writer = await Writer.of(database, tenant)

            async def send() -> float:
                [post] = writer.write(1)
                await enqueue(database, tenant, post)
                started = time.monotonic()
                await client.publish(subject)
                return started

            yield send
    finally:
        await client.close()


async def latencies(send: Send, provider: Receiver, count: int, chat: str = "") -> list[float]:
    """Seconds, one post at a time, with a breath between them; ``chat``: the only one whose calls count."""
    found = []
    for _ in range(count):
        arrival = provider.next_arrival(chat)
        started = await send()
        try:
            found.append(await asyncio.wait_for(arrival, PATIENCE) - started)
        except TimeoutError:
            raise BenchError(f"a post did not reach the provider within {PATIENCE:g} s") from None
        await asyncio.sleep(BREATH)
    return found
