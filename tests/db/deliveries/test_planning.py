"""Whatever the planner knows of the tables, a call costs what it does, and not what waits in the queue."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from db.support import hot_calls, hot_conversations, hot_publications
from db.support.hot_calls import World
from harness.full import FULL
from harness.statistics import EMPTY, NEVER_ANALYSED, forget_statistics

FEW = 2_000
BURST = 700_000 if FULL else 200_000
RATIO = 2.5
"""Indexes of a big table are deeper than those of a small one, and what earlier calls rolled back is still there."""
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


NOT_MEASURED = {
    # at the start of a service, or every few minutes, over few rows
    *("active_workspaces", "adopt_policy", "check_writes", "end_leader_lease", "take_leader_lease"),
    *("resolve_status_token", "working_conditions"),
    # partitions are few; each is dropped whole or walked to its end
    *("checkpoint_deliveries", "drop_event_partition", "ensure_event_partitions", "expired_event_partitions"),
    *("partitions_ahead", "orphan_events", "reconcile_events"),
    # the relay's own row
    *("adopt_stream", "advance_relay", "open_relay"),
    # alerts and notices: a few rows per workspace
    *("abandon_notices", "count_alerts", "next_notice", "record_notice_result", "retain_alerts", "send_snapshot"),
    # reads no table
    "publication_error_type",
    # what owners of publications are told: a few rows
    *("give_up_owner_notices", "next_owner_notices", "record_owner_notice"),
    # media is collected along a cursor, in batches
    *("finish_media_deletion", "mark_media_for_deletion", "mark_orphan_objects", "retain_media_blobs"),
}


def test_every_function_that_a_service_calls_is_measured_or_named() -> None:
    root = Path(__file__).parents[3]
    functions = {path.stem for path in (root / "db/functions").rglob("*.sql")}
    called = {
        name
        for gateway in root.glob("services/*/*/**/*gateway*.py")
        for name in re.findall(r"\b(\w+)\(", "".join(re.findall(r'"[^"]*"', gateway.read_text())))
    }
    sources = map(inspect.getsource, (hot_calls, hot_conversations, hot_publications))
    measured = set(re.findall(r"\b(\w+)\(", "".join(sources)))

    assert (called & functions) - measured - NOT_MEASURED == set()
    assert called >= NOT_MEASURED


async def counts(world: World, connection: Any) -> dict[str, int]:
    return await world.touched(connection) | await world.read_by_reports(connection)
