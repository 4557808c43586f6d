"""Slots: 40 channels under a group's 27 a second, two replicas, and a provider that would refuse the 31st."""

import asyncio

from autopost_cli.bench.arena import Arena, BenchError, connected
from autopost_cli.bench.drain import fill
from autopost_cli.bench.figures import Figures
from autopost_cli.bench.ledger import by_key, over_limit, too_close, use
from autopost_cli.bench.receiver import Receiver, receiving
from autopost_cli.bench.replicas import replicas
from autopost_cli.bench.tenants import Rates, Tenant, statement

RATES = Rates(group=27, channel=0.9, max_parallel=1)
"""Nine tenths of what the provider allows."""
GROUP_LIMIT = 30
CHANNEL_LIMIT = 1
MARGIN = 5.0


async def measure(arena: Arena, figures: Figures) -> None:
    """All repetitions in one call: they have a number of their own."""
    for repetition in range(arena.counts.slot_repetitions):
        seconds = arena.counts.slot_period.total_seconds()
        arena.say(f"slots for {seconds:g} s, {repetition + 1} of {arena.counts.slot_repetitions}")
        async with arena.tenant(arena.counts.channels[0], RATES) as tenant, receiving() as receiver:
            await fill(tenant, round(RATES.group * (seconds + MARGIN)))
            await _send(tenant, receiver, seconds)
            await _judge(tenant, receiver, figures)


async def _send(tenant: Tenant, receiver: Receiver, seconds: float) -> None:
    async with replicas(2, tenant, receiver.url) as pair:
        receiver.arrivals.clear()
        first = receiver.next_arrival()
        for one in pair:
            one.tell("go")
        await first
        await asyncio.sleep(seconds)
        last = receiver.arrivals[-1].at
    receiver.arrivals[:] = [arrival for arrival in receiver.arrivals if arrival.at <= last]


async def _judge(tenant: Tenant, receiver: Receiver, figures: Figures) -> None:
    arrivals = [arrival.at for arrival in receiver.arrivals]
    chats = by_key((arrival.chat, arrival.at) for arrival in receiver.arrivals)
    over = over_limit(arrivals, GROUP_LIMIT) + sum(over_limit(chat, CHANNEL_LIMIT) for chat in chats.values())
    figures.record("slots.use", use(arrivals, RATES.group), "of the rate")
    figures.record("slots.receiver_violations", over, "windows")
    figures.record("slots.ledger_violations", await ledger_violations(tenant), "slots")


async def ledger_violations(tenant: Tenant) -> int:
    async with connected(tenant.url) as connection:
        rows = await connection.fetch(statement("slots"), tenant.workspace_id)
    if not rows:
        raise BenchError("the ledger is empty")
    given = [(str(row["channel_id"]), row["slot_at"].timestamp()) for row in rows]
    in_channels = sum(too_close(slots, 1 / RATES.channel) for slots in by_key(given).values())
    return too_close([slot for _, slot in given], 1 / RATES.group) + in_channels
