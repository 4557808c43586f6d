"""Whatever the planner knows of the tables, a call costs what it does, and not what waits in the queue."""

from typing import Any

import pytest
from db.support.hot_calls import World
from harness.statistics import EMPTY, NEVER_ANALYSED, forget_statistics

FEW = 2_000
BURST = 700_000
RATIO = 2.0
"""Indexes of a big table are deeper than those of a small one."""
MORE = 200
PER_LIVE_DELIVERY = 0.2
"""Buffers: a queue row is a fiftieth of a page, a probe of its delivery would be four or five."""
STATISTICS = {"never analysed": NEVER_ANALYSED, "analysed while empty": EMPTY}


@pytest.fixture
async def world(quiet_database: Any) -> World:
    world = await World.open(quiet_database.pool)
    await world.burst(await quiet_database.connect(), FEW)
    return world


async def test_no_statistics_make_a_call_read_the_backlog(quiet_database, world):
    """Plans made before the burst and after it; without statistics, with those of empty tables, and with true ones."""
    admin = await quiet_database.connect()
    await admin.execute("VACUUM (ANALYZE)")
    before = await world.touched(await quiet_database.connect())
    early = {name: await quiet_database.connect() for name in STATISTICS}
    for name, rows in STATISTICS.items():
        await forget_statistics(admin, rows)
        await world.touched(early[name])
        await world.read_by_reports(early[name])

    await world.burst(admin, BURST)

    found = {f"planned before, {name}": await counts(world, one) for name, one in early.items()}
    for name, rows in STATISTICS.items():
        await forget_statistics(admin, rows)
        found[f"planned after, {name}"] = await counts(world, await quiet_database.connect())
    await admin.execute("ANALYZE")
    found["analysed"] = await counts(world, await quiet_database.connect())
    most = {call: RATIO * count + MORE for call, count in before.items()}
    most |= dict.fromkeys(await world.reports(), PER_LIVE_DELIVERY * BURST)
    faults = {
        f"{call}, {when}": (most[call], count)
        for when, calls in found.items()
        for call, count in calls.items()
        if count > most[call]
    }
    assert faults == {}


async def counts(world: World, connection: Any) -> dict[str, int]:
    return await world.touched(connection) | await world.read_by_reports(connection)
