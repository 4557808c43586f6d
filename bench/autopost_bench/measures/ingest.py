"""Ingest: posts through HTTP against the same calls made directly, and one post for one channel at a time."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.identity import new_id
from msgspec.structs import replace

from autopost_bench.machine import anchors
from autopost_bench.machine.server import BenchError, BenchServer, connected
from autopost_bench.machine.tenants import ALL_GATES_ON, Tenant, Writer, enqueue, make_tenant, owned, text
from autopost_bench.programs.sender import Sender
from autopost_bench.programs.services import services_at
from autopost_bench.report.figures import Figures

SENDERS = 16
SENDERS_TO_ONE = 64


async def measure(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: the service is started once."""
    server.say("ingest: starting it")
    channels, posts = server.counts.channels[0], server.counts.posted
    async with server.tenant(channels) as tenant, services_at(tenant, None, "ingest") as stack:
        async with connected(tenant.url) as connection:
            single = replace(await make_tenant(connection, WorkspaceId(new_id()), 1, ALL_GATES_ON), url=tenant.url)
        url = f"{stack.urls['ingest']}/v1/posts"
        async with senders(url, tenant, SENDERS) as to_all, senders(url, single, SENDERS_TO_ONE) as to_one:
            await _posts(to_all, SENDERS)
            await _posts(to_one, SENDERS_TO_ONE)
            for repetition in range(server.counts.repetitions):
                server.say(f"ingest, {repetition + 1} of {server.counts.repetitions}")
                figures.record("ingest.http", channels * await _posts(to_all, posts))
                figures.record("ingest.direct", channels * await _direct(tenant, posts))
                await anchors.measure(server, figures)
                figures.record("ingest.one_channel", await _posts(to_one, server.counts.posted_to_one))


@contextlib.asynccontextmanager
async def senders(url: str, tenant: Tenant, count: int) -> AsyncIterator[list[Sender]]:
    made = [await Sender.to(url, Authorization=f"Bearer {tenant.secret}") for _ in range(count)]
    try:
        yield made
    finally:
        for sender in made:
            sender.close()


async def _posts(by: Sequence[Sender], count: int) -> float:
    """Posts per second, each of its own, written before the clock starts."""
    bodies = [msgspec.json.encode({"text": text(number)}) for number in range(count)]
    waiting, statuses = iter(bodies), Counter[int]()
    started = time.perf_counter()
    await asyncio.gather(*(sender.post_all(waiting, lambda status: statuses.update((status,))) for sender in by))
    rate = count / (time.perf_counter() - started)
    if set(statuses) != {HTTPStatus.ACCEPTED}:
        raise BenchError(f"posts were answered with {dict(statuses)}")
    return rate


async def _direct(tenant: Tenant, count: int) -> float:
    """The same number of callers, the same posts, compiled before."""
    async with owned(tenant) as database:
        posts = (await Writer.of(database, tenant)).write(count + SENDERS)

        async def call(post: dict[str, Any]) -> None:
            if (await enqueue(database, tenant, post))["enqueued"] != tenant.channels:
                raise BenchError("a post did not reach all channels")

        await shared(call, posts[:SENDERS], SENDERS)  # opens the connections
        return await shared(call, posts[SENDERS:], SENDERS)


async def shared(work: Callable[[Any], Awaitable[None]], items: Any, workers: int) -> float:
    """Items per second, by so many workers."""
    waiting: Iterator[Any] = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(workers)))
    return len(items) / (time.perf_counter() - started)
