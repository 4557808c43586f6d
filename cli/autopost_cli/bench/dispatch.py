"""Dispatch: with a real HTTP call for each delivery, and by two processes against one.

The provider is receiver.py, in a process of its own. The client alone is aiohttp's session with the connector that
the dispatcher's client has, as many calls at once, and nothing around it.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import aiohttp
from autopost_adapters.registry import adapters
from autopost_dispatcher.config import DispatcherConfig
from autopost_runtime.http import IDLE_LIMIT, HttpClient

from autopost_cli.bench.arena import Arena, BenchError
from autopost_cli.bench.children import Child, child
from autopost_cli.bench.drain import check_drained, drain, fill
from autopost_cli.bench.figures import Figures
from autopost_cli.bench.replica import NOOP
from autopost_cli.bench.replicas import replicas
from autopost_cli.bench.tenants import TOKEN, Tenant, text
from autopost_cli.bench.turns import TURNS_EACH, in_turns

BODY = b'{"chat_id":-1001000000001,"text":"%b"}'
TIMEOUT = timedelta(seconds=30)


async def measure(arena: Arena, figures: Figures) -> None:
    config = DispatcherConfig(database_url="")
    async with child("receiver") as provider:
        url = await provider.read()
        await _clients(arena, figures, url, config.concurrency)
        await _http(arena, figures, url, config)
    await in_turns(figures, partial(_replicas, arena, 1, "one"), partial(_replicas, arena, 2, "two"))


async def _http(arena: Arena, figures: Figures, url: str, config: DispatcherConfig) -> None:
    arena.say("drain with an HTTP call each")
    async with HttpClient(limit=config.concurrency) as http, arena.tenant(arena.counts.channels[0]) as tenant:
        sending = adapters(http, telegram_url=url, max_url=url, timeout=config.provider_timeout)
        figures.record("dispatch.http", await drain(tenant, arena.counts.called, sending))


async def _clients(arena: Arena, figures: Figures, url: str, concurrency: int) -> None:
    arena.say("the HTTP client alone")
    target = f"{url}/bot{next(iter(TOKEN.values()))}/sendMessage"
    body = BODY % text(0).encode()
    connector = aiohttp.TCPConnector(
        limit=concurrency, ssl=ssl.create_default_context(), keepalive_timeout=IDLE_LIMIT.total_seconds()
    )
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def by_aiohttp() -> None:
            async with session.post(target, data=body, headers={"Content-Type": "application/json"}) as answer:
                await answer.read()

        figures.record("client.aiohttp", await _calls(by_aiohttp, arena.counts.called, concurrency))
    async with HttpClient(limit=concurrency) as http:

        async def by_ours() -> None:
            await http.request("POST", target, json={"chat_id": 1, "text": text(0)}, timeout=TIMEOUT)

        figures.record("client.ours", await _calls(by_ours, arena.counts.called, concurrency))


async def _calls(call: Callable[[], Awaitable[None]], count: int, concurrency: int) -> float:
    """Calls per second, ``concurrency`` at a time."""
    left = 0

    async def caller() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await call()

    async def all_of(calls: int) -> None:
        nonlocal left
        left = calls
        await asyncio.gather(*(caller() for _ in range(concurrency)))

    await all_of(concurrency)  # opens the connections
    started = time.perf_counter()
    await all_of(count)
    return count / (time.perf_counter() - started)


async def _replicas(arena: Arena, count: int, name: str) -> dict[str, float]:
    arena.say(f"drain by {name}, in processes of their own")
    async with arena.tenant(arena.counts.channels[0]) as tenant:
        return {f"replicas.{name}": await _drained_by(count, tenant, arena.counts.replicas_drained // TURNS_EACH)}


async def _drained_by(count: int, tenant: Tenant, deliveries: int) -> float:
    deliveries = await fill(tenant, deliveries)
    async with replicas(count, tenant, NOOP) as running:
        started = time.perf_counter()
        for one in running:
            one.tell("go")
        ended = await _all_committed(running, deliveries)
        await asyncio.sleep(0.1)  # for the claim that finds nothing left
    await check_drained(tenant, deliveries)
    return deliveries / (ended - started)


async def _all_committed(running: list[Child], deliveries: int) -> float:
    """When the last of them was."""
    counts = [0] * len(running)
    enough = asyncio.Event()

    async def follow(number: int, one: Child) -> None:
        while sum(counts) < deliveries:
            counts[number] = int(await one.read())
        enough.set()

    following = [asyncio.ensure_future(follow(number, one)) for number, one in enumerate(running)]
    try:
        waiting = asyncio.ensure_future(enough.wait())
        await asyncio.wait({waiting, *following}, return_when=asyncio.FIRST_COMPLETED)
        ended = time.perf_counter()
        if not enough.is_set():
            raise BenchError(f"replicas committed {counts} of {deliveries}")
        return ended
    finally:
        for task in (*following, waiting):
            task.cancel()
