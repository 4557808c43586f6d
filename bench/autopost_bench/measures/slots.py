"""Slots: several tenants at nine tenths of what their provider allows, two replicas, and a stop in between.

Each tenant has a token group of its own that may send 27 a second where the provider refuses the 31st, and channels at
a rate of their own. All run at once: what binds is different for each.
"""

import asyncio
import signal
import time
from collections.abc import Sequence

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.identity import new_id
from msgspec import Struct

from autopost_bench.machine.server import BenchError, BenchServer, connected
from autopost_bench.machine.tenants import Rates, Tenant, Writer, enqueue, make_tenant, owned, statement
from autopost_bench.measures.replicas import replicas
from autopost_bench.programs.receiver import Arrival, Receiver, receiving
from autopost_bench.report.figures import Figures
from autopost_bench.report.ledger import TOLERANCE, by_key, over_limit, too_close, use

GROUP = 27.0
GROUP_LIMIT = 30
MARGIN = 5.0
START = 2.0
"""Seconds within which every channel has its first call; the group lets forty begin in one and a half."""
IDLE = 5.0
"""Seconds between two bursts of the idle tenant."""
BURST = 3
LOOK = 0.005


class SlotsCase(Struct, frozen=True, kw_only=True):
    """``limit`` calls in ``window`` seconds are what the provider allows in one chat."""

    name: str
    channels: int
    rate: float
    limit: int
    window: float
    calls: int = 1
    idles: bool = False

    @property
    def rates(self) -> Rates:
        return Rates(group=GROUP, channel=self.rate, max_parallel=max(1, round(self.rate)))

    @property
    def is_bound_by_group(self) -> bool:
        return self.channels * self.rate > GROUP


CASES = (
    SlotsCase(name="one_a_second", channels=40, rate=0.9, limit=1, window=1.0),
    SlotsCase(name="one_in_three_seconds", channels=40, rate=0.3, limit=1, window=3.0),
    SlotsCase(name="twenty_a_second", channels=2, rate=18, limit=20, window=1.0),
    SlotsCase(name="three_calls", channels=40, rate=0.9, limit=1, window=1.0, calls=3),
    SlotsCase(name="idle", channels=1, rate=0.9, limit=1, window=1.0, idles=True),
)


class Steady(Struct, frozen=True):
    began: float
    ended: float
    stalled: float = 0.0
    """Seconds of it in which the machine gave nobody a turn, beyond what the slot rule forgives: what no dispatcher can
    use, and must not make up for."""


class Stage(Struct, frozen=True):
    """A case with its tenant; its chats are told apart by their numbers."""

    case: SlotsCase
    tenant: Tenant
    chats: frozenset[str]


async def measure(server: BenchServer, figures: Figures) -> None:
    """All repetitions in one call: they have a number of their own."""
    for repetition in range(server.counts.slot_repetitions):
        seconds, stop = server.counts.slot_period.total_seconds(), server.counts.slot_stop.total_seconds()
        server.say(f"slots for {seconds:g} s and across a stop, {repetition + 1} of {server.counts.slot_repetitions}")
        async with server.database("migrated") as url, receiving() as receiver:
            await _log_slots(url)
            stages = [await _set(url, case, number) for number, case in enumerate(CASES)]
            for stage in stages:
                if not stage.case.idles:
                    await _fill(stage, seconds + 2 * stop + MARGIN)
            steady = await _send(stages, receiver, seconds, stop)
            await _judge(stages, receiver.arrivals, steady, figures)


async def _log_slots(url: str) -> None:
    async with connected(url) as connection:
        await connection.execute(statement("slot_log"))


async def _set(url: str, case: SlotsCase, number: int) -> Stage:
    async with connected(url) as connection:
        tenant = await make_tenant(connection, WorkspaceId(new_id()), case.channels, case.rates, first=number * 1000)
        chats = await connection.fetch("SELECT target_id FROM channels WHERE workspace_id = $1", tenant.workspace_id)
    return Stage(case, tenant.at(url), frozenset(row["target_id"] for row in chats))


async def _fill(stage: Stage, seconds: float) -> None:
    """More than can be sent in that time."""
    case = stage.case
    deliveries = min(GROUP, case.channels * case.rate) * seconds / case.calls
    await _post(stage, 1 + round(deliveries / case.channels))


async def _post(stage: Stage, posts: int) -> None:
    async with owned(stage.tenant) as database:
        for post in (await Writer.of(database, stage.tenant)).write(posts, stage.case.calls):
            await enqueue(database, stage.tenant, post)


async def _send(stages: Sequence[Stage], receiver: Receiver, seconds: float, stop: float) -> Steady:
    """When it ran undisturbed; then both replicas stand still for a while, and go on."""
    idle = next(stage for stage in stages if stage.case.idles)
    async with replicas(2, idle.tenant, receiver.url) as pair:
        receiver.arrivals.clear()
        first = receiver.next_arrival()
        for one in pair:
            one.tell("go")
        started = await first
        bursts = asyncio.create_task(_burst_again_and_again(idle))
        stalled = await _stalls(seconds)
        for one in pair:
            one.signal(signal.SIGSTOP)
        await asyncio.sleep(stop)
        for one in pair:
            one.signal(signal.SIGCONT)
        await asyncio.sleep(stop)
        bursts.cancel()
        await asyncio.wait([bursts])
    return Steady(started, started + seconds, stalled)


async def _stalls(seconds: float) -> float:
    """Looks at the clock for as long as this, and adds up for how long it could not."""
    stalled, last = 0.0, time.monotonic()
    until = last + seconds
    while last < until:
        await asyncio.sleep(LOOK)
        now = time.monotonic()
        stalled += max(0.0, now - last - LOOK - TOLERANCE)
        last = now
    return stalled


async def _burst_again_and_again(idle: Stage) -> None:
    while True:
        await _post(idle, BURST)
        await asyncio.sleep(BURST / idle.case.rate + IDLE)


async def _judge(stages: Sequence[Stage], arrivals: Sequence[Arrival], steady: Steady, figures: Figures) -> None:
    used, over, close = [], 0, 0
    for stage in stages:
        calls = [arrival for arrival in arrivals if arrival.chat in stage.chats]
        chats = by_key((arrival.chat, arrival.at) for arrival in calls)
        case = stage.case
        in_group = over_limit([arrival.at for arrival in calls], GROUP_LIMIT)
        in_chats = sum(over_limit(chat, case.limit, case.window) for chat in chats.values())
        figures.record(f"slots.over.{case.name}", in_group + in_chats, "windows")
        over += in_group + in_chats
        ahead = await _ledger_violations(stage)
        figures.record(f"slots.ahead.{case.name}", ahead, "slots")
        close += ahead
        if not case.idles:
            used.append(_use(stage, calls, steady))
            figures.record(f"slots.use.{case.name}", used[-1], "of the rate")
    figures.record("slots.use", min(used), "of the rate")
    figures.record("slots.stalled", steady.stalled / (steady.ended - steady.began), "of the time")
    figures.record("slots.receiver_violations", over, "windows")
    figures.record("slots.ledger_violations", close, "slots")


def _use(stage: Stage, calls: Sequence[Arrival], steady: Steady) -> float:
    """Of what binds: the group, or each channel, also one that was never called."""
    case, since = stage.case, steady.began + START
    if case.is_bound_by_group:
        return use([[call.at for call in calls]], GROUP, since, steady.ended)
    chats = by_key((call.chat, call.at) for call in calls)
    return use([chats.get(chat, ()) for chat in stage.chats], case.rate, since, steady.ended)


async def _ledger_violations(stage: Stage) -> int:
    """Of all slots: those that claims gave, and those that were taken for the calls after the first."""
    async with connected(stage.tenant.url) as connection:
        rows = await connection.fetch(statement("slots"), stage.tenant.workspace_id)
    if not rows:
        raise BenchError(f"the ledger of {stage.case.name} is empty")
    own = by_key((str(row["channel_id"]), row["slot_at"].timestamp()) for row in rows if row["in_chat"])
    in_channels = sum(too_close(slots, _step(stage.case.rate)) for slots in own.values())
    return too_close([row["slot_at"].timestamp() for row in rows], _step(GROUP)) + in_channels


def _step(rate: float) -> float:
    """As the database keeps it, in whole microseconds."""
    return int(1_000_000 / rate) / 1_000_000
