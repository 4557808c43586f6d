"""Relays killed between any two steps, and whole monitors killed while they lead."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from db.builders import Tenant
from harness.databases import Database
from harness.eventually import eventually

from monitor.relaying import Audit, out_of_order, outlive_the_lease, relaying

POINTS = ["read", "published", "moved"]
KILLS = 20 if os.environ.get("CI") else 4
CHUNK = 10
"""Of the mortal ones."""

BEGUN = "SELECT begun_at FROM monitor_rounds WHERE round = $1"
PLENTY = timedelta(minutes=1)

Bury = Callable[[str], Awaitable[int]]


@pytest.fixture
async def shop(quiet_database: Database) -> Tenant:
    tenant = await Tenant.create(quiet_database.pool)
    await tenant.channels(4)
    return tenant


@pytest.fixture
async def let_die(quiet_database: Database, nats_url: str, nats_namespace: str) -> AsyncIterator[Bury]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "monitor.mortal_relay", quiet_database.url, nats_url, nats_namespace),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
    )

    async def live(point: str) -> int:
        assert process.stdin and process.stdout
        process.stdin.write(f"{point}\n".encode())
        return int(await asyncio.wait_for(process.stdout.readline(), PLENTY.total_seconds()))

    yield live
    os.killpg(process.pid, signal.SIGKILL)  # with whatever it has forked
    await process.wait()


@pytest.mark.parametrize("point", POINTS)
async def test_a_relay_killed_between_two_steps_loses_nothing_and_repeats_at_most_a_chunk(
    quiet_database, shop, let_die, nats_url, nats_namespace, point
):
    audit = Audit(nats_url, nats_namespace)
    for _ in range(KILLS):
        for _ in range(5):
            await shop.enqueue()
        await shop.drain()
        assert await let_die(point) == -signal.SIGKILL
        await outlive_the_lease(shop.db)

    async with relaying(quiet_database.url, nats_url, nats_namespace):
        told = await audit.has_all_of(shop.db)

    copies = Counter(event.id for event in told)
    assert out_of_order(told) == []
    assert sum(copies.values()) - len(copies) <= KILLS * CHUNK


@asynccontextmanager
async def monitor(database_url: str, nats_url: str, namespace: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The service itself, in a process of its own."""
    settings = {
        "database_url": database_url,
        "nats_url": nats_url,
        "nats_namespace": namespace,
        "recover_interval": "200ms",
        "log_level": "error",
    }
    given = {f"AUTOPOST_{name.upper()}": value for name, value in settings.items()}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "autopost_monitor", env=os.environ | given)
    try:
        yield process
        if process.returncode is None:
            process.terminate()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def holder(pool: Any) -> Any:
    return await pool.fetchval("SELECT holder FROM monitor_rounds WHERE round = 'relay'")


async def test_a_killed_leader_is_replaced_within_fifteen_seconds(quiet_database, shop, nats_url, nats_namespace):
    audit = Audit(nats_url, nats_namespace)
    place = (quiet_database.url, nats_url, nats_namespace)

    async with monitor(*place) as first:
        leader = await eventually(lambda: holder(shop.db), within=PLENTY)
        async with monitor(*place):
            await shop.enqueue()
            await audit.has_all_of(shop.db)
            recovered = await eventually(lambda: shop.db.fetchval(BEGUN, "recover"), within=PLENTY)

            first.kill()
            await first.wait()
            await shop.enqueue()

            async def replaced() -> bool:
                return await holder(shop.db) not in (leader, None)

            await eventually(replaced, within=timedelta(seconds=15))
            told = await audit.has_all_of(shop.db)

            async def recovering() -> bool:
                return bool(await shop.db.fetchval(BEGUN, "recover") > recovered)

            await eventually(recovering, within=PLENTY)

    assert len(told) == len({event.id for event in told})


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(quiet_database, shop, nats_url, nats_namespace):
    place = (quiet_database.url, nats_url, nats_namespace)

    async with monitor(*place):
        await eventually(lambda: holder(shop.db), within=PLENTY)

    assert await holder(shop.db) is None
