"""The chat stream: memory of idle streams, one change to many, one change across replicas, starts a second.

The least server of streams is bare_hub.py, in processes of its own, with the same clients.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from autopost_runtime.postgres.identity import new_id
from msgspec import Struct

from autopost_bench.machine import anchors
from autopost_bench.machine.server import BenchError, BenchServer, connected
from autopost_bench.machine.tenants import Tenant
from autopost_bench.measures.ingest import senders
from autopost_bench.programs import bare_hub
from autopost_bench.programs.children import Child, child
from autopost_bench.programs.sender import Sender
from autopost_bench.programs.services import services_at
from autopost_bench.report.figures import Figures, percentile

CALLERS = 64
CHATS = 1_000
"""Of the actions that are started."""
WARM_UP = 20
BREATH = 0.005
CHAT, BARE = "/api/chats/{}/events", "/events"
START = "/api/chat/actions/start"
BUSY = "busy"


class Side(Struct, frozen=True, kw_only=True):
    """What streams come from: ours, or the bare hub. ``near`` takes changes, ``far`` is another replica."""

    name: str
    near: str
    far: str
    path: str
    poster: Sender
    write: Callable[[], bytes]
    secret: str = ""

    def listeners(self, count: int, *, far: bool) -> AbstractAsyncContextManager[Child]:
        return child("listeners", self.far if far else self.near, self.path, self.secret, str(count))


async def measure(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: the services are started once."""
    server.say("stream: starting two replicas and the bare hub")
    async with server.tenant(1) as tenant:
        await _prepare(tenant)
        async with services_at(tenant, None, "bot", "other_bot", AUTOPOST_STREAM_CLIENTS=_room(server)) as stack:
            where = (tenant.url, str(stack.backends.nats_url))
            async with child("bare_hub", *where) as near, child("bare_hub", *where) as far:
                url, bare_url = stack.urls["bot"], await near.read()
                await _idle(server, figures, "stream", stack.pid("bot"), url, CHAT, tenant.secret)
                await _idle(server, figures, "bare", near.pid, bare_url, BARE, "")
                bare = await _bare_side(tenant, bare_url, await far.read())
                ours = await _our_side(tenant, url, stack.urls["other_bot"])
                await _changes(server, figures, (ours, bare))
                await _starts(server, figures, tenant, url)


async def _our_side(tenant: Tenant, near: str, far: str) -> Side:
    return Side(
        name="stream",
        near=near,
        far=far,
        path=CHAT.format(BUSY),
        secret=tenant.secret,
        poster=await Sender.to(f"{near}{START}", Authorization=f"Bearer {tenant.secret}"),
        write=lambda: _start(tenant, BUSY),
    )


async def _bare_side(tenant: Tenant, near: str, far: str) -> Side:
    poster = await Sender.to(f"{near}/")
    return Side(name="bare", near=near, far=far, path=BARE, poster=poster, write=lambda: _start(tenant, BUSY))


def _room(server: BenchServer) -> str:
    """Of which one workspace gets three quarters."""
    return str(server.counts.idle_streams * 3 // 2)


async def _prepare(tenant: Tenant) -> None:
    async with connected(tenant.url) as connection:
        await connection.execute("UPDATE workspace_endpoints SET kind = 'bot_api'")
    await bare_hub.prepare(tenant.url)


async def _idle(server: BenchServer, figures: Figures, name: str, pid: int, *where: str) -> None:
    """Each stream of a chat of its own, until each has got a keep-alive."""
    count = server.counts.idle_streams
    server.say(f"{count:,} idle streams, {name}")
    before = _memory(pid)
    async with child("listeners", *where, str(count)) as listeners:
        await listeners.expect("ready")
        alive = int(await _asked(listeners, "alive"))
        figures.record(f"{name}.idle_bytes", (_memory(pid) - before) / alive, "bytes")
    figures.record(f"{name}.idle", alive, "streams")


async def _changes(server: BenchServer, figures: Figures, sides: tuple[Side, ...]) -> None:
    for repetition in range(server.counts.repetitions):
        server.say(f"changes, {repetition + 1} of {server.counts.repetitions}")
        for side in sides:
            await _fan_out(server, figures, side)
        for side in sides:
            await _across(server, figures, side)


async def _fan_out(server: BenchServer, figures: Figures, side: Side) -> None:
    async with side.listeners(server.counts.busy_streams, far=False) as listeners:
        await listeners.expect("ready")
        await _told(side, listeners, server.counts.busy_streams)  # warms up
        found: list[float] = []
        for _ in range(server.counts.fanned_out):
            found += await _told(side, listeners, server.counts.busy_streams)
    _record(figures, f"{side.name}.fan_out", found)


async def _across(server: BenchServer, figures: Figures, side: Side) -> None:
    async with side.listeners(1, far=True) as listeners:
        await listeners.expect("ready")
        for _ in range(WARM_UP):
            await _told(side, listeners, 1)
        found: list[float] = []
        for _ in range(server.counts.latencies):
            found += await _told(side, listeners, 1)
            await asyncio.sleep(BREATH)
    _record(figures, f"{side.name}.across", found)


async def _told(side: Side, listeners: Child, count: int) -> list[float]:
    """Seconds from before the request until each of the clients had the event."""
    body = side.write()
    started = time.monotonic()
    if (status := await side.poster.post(body)) != HTTPStatus.CREATED:
        raise BenchError(f"a change was answered with {status}")
    return [at - started for at in await _asked(listeners, f"expect {count}")]


async def _starts(server: BenchServer, figures: Figures, tenant: Tenant, url: str) -> None:
    for repetition in range(server.counts.repetitions):
        server.say(f"starts, {repetition + 1} of {server.counts.repetitions}")
        bodies = [_start(tenant, f"chat {number % CHATS}") for number in range(server.counts.started)]
        async with senders(f"{url}{START}", tenant, CALLERS) as callers:
            figures.record("stream.starts", await _posted(callers, bodies))
        await anchors.measure(server, figures, "stream.")


async def _posted(callers: list[Sender], bodies: list[bytes]) -> float:
    """Per second."""
    waiting, statuses = iter(bodies), Counter[int]()
    started = time.perf_counter()
    await asyncio.gather(*(caller.post_all(waiting, lambda status: statuses.update((status,))) for caller in callers))
    rate = len(bodies) / (time.perf_counter() - started)
    if set(statuses) != {HTTPStatus.CREATED}:
        raise BenchError(f"starts were answered with {dict(statuses)}")
    return rate


def _start(tenant: Tenant, chat: str) -> bytes:
    return msgspec.json.encode(
        {"workspaceId": tenant.workspace_id, "chatId": chat, "actionId": new_id(), "actionType": "summarize"}
    )


def _record(figures: Figures, name: str, found: list[float]) -> None:
    for label, part in (("p50", 0.5), ("p99", 0.99)):
        figures.record(f"{name}.{label}", percentile(found, part) * 1e3, "milliseconds")


async def _asked(listeners: Child, question: str) -> Any:
    listeners.tell(question)
    return msgspec.json.decode(await listeners.read())


def _memory(pid: int) -> int:
    """Bytes of its own that the system keeps for it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"the system says nothing about the memory of process {pid}")
