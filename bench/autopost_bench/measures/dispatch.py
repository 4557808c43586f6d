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
from autopost_runtime.http.client import IDLE_LIMIT, HttpClient

from autopost_bench.machine.server import BenchError, BenchServer
from autopost_bench.machine.tenants import TOKEN, Tenant, text
from autopost_bench.measures.drain import check_drained, drain, fill
from autopost_bench.measures.replicas import replicas
from autopost_bench.measures.turns import TURNS_EACH, in_turns
from autopost_bench.programs.children import Child, child
from autopost_bench.programs.replica import NOOP
from autopost_bench.report.figures import Figures

BODY = b'{"chat_id":-1001000000001,"text":"%b"}'
TIMEOUT = timedelta(seconds=30)


async def measure(server: BenchServer, figures: Figures) -> None:
    config = DispatcherConfig(database_url="")
    async with child("receiver") as provider:
        url = await provider.read()
        await _clients(server, figures, url, config.concurrency)
        await _http(server, figures, url, config)
    await in_turns(figures, partial(_replicas, server, 1, "one"), partial(_replicas, server, 2, "two"))


async def _http(server: BenchServer, figures: Figures, url: str, config: DispatcherConfig) -> None:
    server.say("drain with an HTTP call each")
    async with HttpClient(limit=config.concurrency) as http, server.tenant(server.counts.channels[0]) as tenant:
        sending = adapters(http, telegram_url=url, max_url=url, timeout=config.provider_timeout)
        figures.record("dispatch.http", await drain(tenant, server.counts.called, sending))


async def _clients(server: BenchServer, figures: Figures, url: str, concurrency: int) -> None:
    server.say("the HTTP client alone")
    target = f"{url}/bot{TOKEN.reveal()}/sendMessage"
    body = BODY % text(0).encode()
    connector = aiohttp.TCPConnector(
        limit=concurrency, ssl=ssl.create_default_context(), keepalive_timeout=IDLE_LIMIT.total_seconds()
    )
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def by_aiohttp() -> None:
            async with session.post(target, data=body, headers={"Content-Type": "application/json"}) as answer:
                await answer.read()

        figures.record("client.aiohttp", await _calls(by_aiohttp, server.counts.called, concurrency))
    async with HttpClient(limit=concurrency) as http:

        async def by_ours() -> None:
            await http.request("POST", target, json={"chat_id": 1, "text": text(0)}, timeout=TIMEOUT)

        figures.record("client.ours", await _calls(by_ours, server.counts.called, concurrency))


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


async def _replicas(server: BenchServer, count: int, name: str) -> dict[str, float]:
    server.say(f"drain by {name}, in processes of their own")
    async with server.tenant(server.counts.channels[0]) as tenant:
        return {f"replicas.{name}": await _drained_by(count, tenant, server.counts.replicas_drained // TURNS_EACH)}


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
