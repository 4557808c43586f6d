"""Many tenants, each bound by the rate of its own token, as in life: how much of it they get, and at what cost.

Every tenant has forty channels and more to send than its rate allows. Whether rates are kept is judged twice, as in
``slots``: by when calls reach the provider, and by the slots in the ledger.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from autopost_adapters.registry import adapters
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.config import DispatcherConfig
from autopost_runtime.http.client import HttpClient
from autopost_runtime.postgres.identity import new_id
from msgspec import Struct

from autopost_bench.machine import processor_time
from autopost_bench.machine.server import BenchServer, connected
from autopost_bench.machine.tenants import Rates, Tenant, make_tenant, statement
from autopost_bench.measures import neighbours
from autopost_bench.measures.busy_tenants import CHANNELS, FIRST_CHAT, TenantsCase, make_busy
from autopost_bench.measures.drain import drain
from autopost_bench.measures.replicas import replicas
from autopost_bench.programs.children import child
from autopost_bench.programs.receiver import Arrival, Receiver, receiving
from autopost_bench.report.figures import Figures
from autopost_bench.report.ledger import by_key, over_limit, too_close, use

HEAD_ROOM = 0.9
"""Rates are set to this part of what the provider allows."""
LEDGERS = 20
"""Workspaces whose slots are read; the arrivals of all are judged."""
START = 3.0
"""Seconds until every tenant has its turn."""


CASES = (
    TenantsCase(name="20", workspaces=20, rate=270),
    TenantsCase(name="200", workspaces=200, rate=27),
    TenantsCase(name="two", workspaces=200, rate=27, replicas=2),
    TenantsCase(name="2000", workspaces=2_000, rate=2.7),
    TenantsCase(name="all", workspaces=1_000, rate=27, is_saturated=True),
    TenantsCase(name="neighbours", workspaces=200, rate=27, has_neighbours=True),
)


class Found(Struct, frozen=True):
    use: float
    per_second: float
    fairness: float
    """The most served workspace ÷ the least."""
    cost: float
    """Microseconds of processor time per delivery, of all processes."""
    over: int
    close: int
    missed: float
    """Of all slots: the call was late and went out in another."""


async def measure(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: they have a number of their own."""
    for _ in range(server.counts.tenant_repetitions):
        figures.record("tenants.drain", await _drain(server))
        for case in CASES:
            found = await run(server, case, server.counts.tenant_period.total_seconds())
            figures.record(f"tenants.{case.name}.use", found.use, "of the rate")
            figures.record(f"tenants.{case.name}.delivered", found.per_second)
            figures.record(f"tenants.{case.name}.most_by_least", found.fairness, "times")
            figures.record(f"tenants.{case.name}.cost", found.cost, "microseconds")
            figures.record(f"tenants.{case.name}.missed", found.missed, "of the slots")
            figures.record("tenants.receiver_violations", found.over, "windows")
            figures.record("tenants.ledger_violations", found.close, "slots")


async def _drain(server: BenchServer) -> float:
    """One workspace without limits, with an HTTP call each: what the same machine does when no rate binds."""
    server.say("one tenant without limits")
    config = DispatcherConfig(database_url="")
    async with (
        child("receiver") as provider,
        HttpClient(limit=config.concurrency) as http,
        server.tenant(CHANNELS) as tenant,
    ):
        url = await provider.read()
        sending = adapters(http, telegram_url=url, max_url=url, timeout=config.provider_timeout)
        return await drain(tenant, server.counts.called, sending)


async def run(server: BenchServer, case: TenantsCase, seconds: float) -> Found:
    server.say(f"{case.workspaces:,} tenants at {case.rate:g} a second, {case.replicas} dispatcher(s), {seconds:g} s")
    async with server.database("migrated") as url, receiving(silent=neighbours.DEAD) as receiver:
        warm, workspaces = await _make(url, case, seconds)
        async with (
            neighbours.beside(warm, server.counts.long_backlog) if case.has_neighbours else contextlib.nullcontext(),
            replicas(case.replicas, warm, receiver.url) as running,
        ):
            receiver.arrivals.clear()
            first = receiver.next_arrival()
            for one in running:
                one.tell("go")
            began = await first + START
            await asyncio.sleep(START)
            before = processor_time.used(server.postmaster)
            await asyncio.sleep(seconds)
            spent, ended = processor_time.used(server.postmaster) - before, began + seconds
            await asyncio.sleep(0.2)
        ledgers = [await _ledger(url, one) for one in workspaces[:: max(1, len(workspaces) // LEDGERS)]]
    return _judge(case, receiver, began, ended, spent, ledgers)


async def _make(url: str, case: TenantsCase, seconds: float) -> tuple[Tenant, list[WorkspaceId]]:
    """A tenant to warm up with, and those that are measured."""
    async with connected(url) as connection:
        rates = Rates(group=case.rate, channel=case.channel_rate, max_parallel=1)
        one = (await make_tenant(connection, WorkspaceId(new_id()), 1, rates)).at(url)
        workspaces = await make_busy(one, case, seconds + START)
        await connection.execute(statement("slot_log"))
        await connection.execute("VACUUM ANALYZE deliveries, delivery_queue, channels, channel_due, platform_limits")
    return one, workspaces


async def _ledger(url: str, workspace: WorkspaceId) -> list[tuple[str, float, bool]]:
    async with connected(url) as connection:
        rows = await connection.fetch(statement("slots"), workspace)
    return [(str(row["channel_id"]), row["slot_at"].timestamp(), row["in_chat"]) for row in rows]


def _judge(
    case: TenantsCase, receiver: Receiver, began: float, ended: float, spent: float, ledgers: Sequence[Any]
) -> Found:
    tenants = _by_tenant(case, receiver.arrivals)
    served = [sum(began <= at < ended for at in calls) for calls in tenants]
    close, slots = 0, [slot for ledger in ledgers for slot in ledger]
    for ledger in ledgers:
        own = by_key((channel, slot) for channel, slot, in_chat in ledger if in_chat)
        close += too_close([slot for _, slot, _ in ledger], _step(case.rate))
        close += sum(too_close(slots, _step(case.channel_rate)) for slots in own.values())
    return Found(
        use=use([[at for at in calls if at >= began] for calls in tenants], case.rate, began, ended),
        per_second=sum(served) / (ended - began),
        fairness=max(served) / max(1, min(served)),
        cost=spent / max(1, sum(served)) * 1e6,
        over=_over(case, tenants, receiver.arrivals),
        close=close,
        missed=sum(not in_chat for _, _, in_chat in slots) / max(1, len(slots)),
    )


def _by_tenant(case: TenantsCase, arrivals: Sequence[Arrival]) -> list[list[float]]:
    tenants: list[list[float]] = [[] for _ in range(case.workspaces)]
    for arrival in arrivals:
        place = (-int(arrival.chat or -FIRST_CHAT) - FIRST_CHAT - 2) // CHANNELS
        if 0 <= place < case.workspaces:
            tenants[place].append(arrival.at)
    return tenants


def _over(case: TenantsCase, tenants: Sequence[Sequence[float]], arrivals: Sequence[Arrival]) -> int:
    """What the provider would have refused: of each token in a second, of each chat in the time of one call or more."""
    chats = by_key((arrival.chat, arrival.at) for arrival in arrivals)
    allowed = case.channel_rate / HEAD_ROOM
    limit, window = max(1, round(allowed)), max(1.0, 1 / allowed)
    in_chats = sum(over_limit(chat, limit, window) for chat in chats.values())
    return in_chats + sum(over_limit(calls, round(case.rate / HEAD_ROOM)) for calls in tenants)


def _step(rate: float) -> float:
    """As the database keeps it, in whole microseconds."""
    return int(1_000_000 / rate) / 1_000_000
