"""Publications: how late they are, with NATS and without, many that are due at once, and what they cost other posts."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

import aiohttp
from autopost_cli.stack.stack import Stack

from autopost_bench.machine.server import BenchError, BenchServer, connected, settled
from autopost_bench.machine.tenants import ALL_GATES_ON, Rates, Tenant, statement, text
from autopost_bench.measures.drain import drain
from autopost_bench.measures.turns import TURNS_EACH, in_turns
from autopost_bench.programs.receiver import Receiver, receiving
from autopost_bench.programs.services import services_at
from autopost_bench.report.figures import Figures, percentile
from autopost_bench.report.ledger import by_key, over_limit, too_close, use

GROUP, GROUP_LIMIT = 27.0, 30
STEP = 3.0
"""Seconds between two publications of a channel."""
LATER = 3.5
"""Seconds from scheduling to the time itself: more than a poll."""
APART = 0.15
CALLERS = 8
ONE_TOKEN = Rates(group=GROUP, channel=0.9, max_parallel=1)
CHANNELS = 100
PATIENCE = 60.0
DROP_TRIGGER = "DROP TRIGGER publication_follows_its_delivery ON deliveries"
ENDPOINT = """
INSERT INTO workspace_endpoints (workspace_id, endpoint_id, kind, secret_hash, ingress_rps, meta)
VALUES ($1, $2, 'publication_api', encode(sha256(convert_to($3, 'UTF8')), 'hex'), NULL,
        '{"name": "bench", "scopes": ["draft", "approve", "schedule"]}')
"""


async def measure(server: BenchServer, figures: Figures) -> None:
    for repetition in range(server.counts.repetitions):
        server.say(f"publications: drain with their trigger and without, {repetition + 1}")
        await in_turns(figures, partial(_drained, server, "with"), partial(_drained, server, "without"))
    await _lateness(server, figures)
    await _many_at_once(server, figures)


async def _drained(server: BenchServer, name: str) -> dict[str, float]:
    async with server.tenant(server.counts.channels[0]) as tenant:
        if name == "without":
            async with connected(tenant.url) as connection:
                await connection.execute(DROP_TRIGGER)
        return {f"publications.drain.{name}": await drain(tenant, server.counts.drained_by_turns // TURNS_EACH)}


async def _lateness(server: BenchServer, figures: Figures) -> None:
    """Of single ones, each in a channel of its own; then the same after NATS was stopped."""
    count = server.counts.published
    rates = Rates(group=GROUP * 100, channel=1_000_000, max_parallel=10)
    async with _publishing(server, count, rates) as (caller, receiver, stack):
        await caller.lateness(receiver)  # connections and plans
        for _ in range(server.counts.repetitions):
            server.say(f"publications: lateness of {count}")
            found = await caller.lateness(receiver)
            figures.record("publications.late.p50", percentile(found, 0.5) * 1e3, "milliseconds")
            figures.record("publications.late.p99", percentile(found, 0.99) * 1e3, "milliseconds")
            figures.record("publications.early", sum(late < 0 for late in found), "publications")
        await stack.stop_nats()
        for _ in range(server.counts.repetitions):
            server.say(f"publications: lateness of {count} without NATS")
            found = await caller.lateness(receiver)
            figures.record("publications.late.without_nats", percentile(found, 0.99) * 1e3, "milliseconds")
            figures.record("publications.early", sum(late < 0 for late in found), "publications")


async def _many_at_once(server: BenchServer, figures: Figures) -> None:
    count = server.counts.due_at_once
    server.say(f"publications: {count} due in one second")
    async with _publishing(server, CHANNELS, ONE_TOKEN, statement("slot_log")) as (caller, receiver, _):
        start = time.time() + 5 + count / 100
        await caller.schedule([(nth % CHANNELS, start + nth / count) for nth in range(count)])
        if time.time() > start:
            raise BenchError("scheduling took so long that the first publications are due")

        async def all_came() -> bool:
            return len(receiver.arrivals) >= count

        await settled(all_came, PATIENCE + 2 * count / GROUP, "some publications did not reach the provider")
        calls = [arrival.at for arrival in receiver.arrivals]
        chats = by_key((arrival.chat, arrival.at) for arrival in receiver.arrivals)
        over = over_limit(calls, GROUP_LIMIT) + sum(over_limit(one, 1, STEP) for one in chats.values())
        figures.record("publications.receiver_violations", over, "windows")
        figures.record("publications.ledger_violations", await caller.ledger_violations(), "slots")
        until = min(calls) + (count - 1) / GROUP
        figures.record("publications.use", use([calls], GROUP, min(calls), until), "of the rate")


class Caller:
    """Drafts, approves and schedules through the HTTP API, as a CRM does."""

    def __init__(self, tenant: Tenant, session: aiohttp.ClientSession, url: str, channels: Sequence[Any]) -> None:
        self._tenant, self._session, self._url = tenant, session, url
        self._channels = channels

    async def lateness(self, receiver: Receiver) -> list[float]:
        """Seconds from each time to its call, one publication in each channel, one after the other."""
        receiver.arrivals.clear()
        first = time.time() + LATER + len(self._channels) / 100
        times = [first + nth * APART for nth in range(len(self._channels))]
        await self.schedule(list(enumerate(times)))

        async def all_came() -> bool:
            return len(receiver.arrivals) >= len(times)

        await settled(all_came, PATIENCE + len(times) * APART, "some publications did not reach the provider")
        offset = time.time() - time.monotonic()
        came = {arrival.chat: arrival.at + offset for arrival in receiver.arrivals}
        return [came[row["target_id"]] - at for row, at in zip(self._channels, times, strict=True)]

    async def schedule(self, times: Sequence[tuple[int, float]]) -> None:
        """By channel, for these moments."""
        left = iter(times)

        async def work() -> None:
            for place, at in left:
                await self._schedule(self._channels[place]["channel_id"], at)

        await asyncio.gather(*(work() for _ in range(CALLERS)))

    async def _schedule(self, channel: UUID, at: float) -> None:
        drafted = await self._call("", {"channel_id": str(channel), "creative_draft": {"text": text(0)}})
        path = f"/{drafted['publication_id']}"
        await self._call(f"{path}/approve", {})
        await self._call(f"{path}/schedule", {"at": datetime.fromtimestamp(at, UTC).isoformat()})

    async def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._session.post(f"{self._url}{path}", json=body, headers={"If-Match": '"1"'}) as answer:
            answered: dict[str, Any] = await answer.json()
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise BenchError(f"a publication was answered with {answer.status}: {answered}")
        return answered

    async def ledger_violations(self) -> int:
        async with connected(self._tenant.url) as connection:
            rows = await connection.fetch(statement("slots"), self._tenant.workspace_id)
        own = by_key((str(row["channel_id"]), row["slot_at"].timestamp()) for row in rows)
        in_channels = sum(too_close(slots, STEP) for slots in own.values())
        return too_close([row["slot_at"].timestamp() for row in rows], int(1_000_000 / GROUP) / 1_000_000) + in_channels


@contextlib.asynccontextmanager
async def _publishing(
    server: BenchServer, channels: int, rates: Rates = ALL_GATES_ON, prepare: str = ""
) -> AsyncIterator[tuple[Caller, Receiver, Stack]]:
    """Ingest and dispatcher as they ship, and whoever calls them."""
    secret = uuid4().hex
    async with (
        server.tenant(channels, rates) as tenant,
        receiving() as provider,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {secret}"}) as session,
    ):
        async with connected(tenant.url) as connection:
            await connection.execute(ENDPOINT, tenant.workspace_id, uuid4(), secret)
            if prepare:
                await connection.execute(prepare)
            rows = await connection.fetch("SELECT channel_id, target_id FROM channels ORDER BY target_id")
        async with services_at(tenant, provider.url, "ingest", "dispatcher") as stack:
            yield Caller(tenant, session, f"{stack.urls['ingest']}/v1/publications", rows), provider, stack
