"""Ingest: posts through its HTTP door against the same calls made directly, and one post for one channel at a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
from autopost_contracts.ids import WorkspaceId
from autopost_runtime.identity import new_id
from msgspec.structs import replace

from autopost_cli.bench.arena import Arena, BenchError, connected
from autopost_cli.bench.figures import Figures
from autopost_cli.bench.services import posting, services_at
from autopost_cli.bench.tenants import ALL_GATES_ON, Tenant, Writer, enqueue, make_tenant, owned

SENDERS = 16
SENDERS_TO_ONE = 64


async def measure(arena: Arena, figures: Figures) -> None:
    """All repetitions in one call: the service is started once."""
    arena.say("ingest: starting it")
    channels, posts = arena.counts.channels[0], arena.counts.posted
    async with arena.tenant(channels) as tenant, services_at(tenant, None, "ingest") as stack:
        async with connected(tenant.url) as connection:
            single = replace(await make_tenant(connection, WorkspaceId(new_id()), 1, ALL_GATES_ON), url=tenant.url)
        connector = aiohttp.TCPConnector(limit=SENDERS_TO_ONE)
        async with aiohttp.ClientSession(connector=connector) as session:
            to_all, to_one = (posting(session, stack.urls["ingest"], one) for one in (tenant, single))
            await _posts(to_all, SENDERS, SENDERS)
            await _posts(to_one, SENDERS_TO_ONE, SENDERS_TO_ONE)
            for repetition in range(arena.counts.repetitions):
                arena.say(f"ingest, {repetition + 1} of {arena.counts.repetitions}")
                figures.record("ingest.http", channels * await _posts(to_all, posts, SENDERS))
                figures.record("ingest.direct", channels * await _direct(tenant, posts))
                figures.record("ingest.one_channel", await _posts(to_one, arena.counts.posted_to_one, SENDERS_TO_ONE))


async def _posts(send: Callable[[], Awaitable[int]], count: int, senders: int) -> float:
    """Posts per second."""

    async def post(_: int) -> None:
        if (status := await send()) != 202:
            raise BenchError(f"a post was answered with {status}")

    return await shared(post, range(count), senders)


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
