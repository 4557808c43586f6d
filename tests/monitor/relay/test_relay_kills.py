"""Relays killed between any two steps, and whole monitors killed while they lead."""

import asyncio
import itertools
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from autopost_cli.embedded.nats import NatsServer
from db.support.ages import age
from db.support.builders import Tenant
from harness.databases import Database
from harness.eventually import eventually
from harness.full import FULL
from monitor.support.load import PLENTY, Load, killed
from monitor.support.running_relay import Audit, out_of_order, outlive_the_lease, running_relay

pytestmark = pytest.mark.time_limit(480)

POINTS = ["read", "published", "moved"]
KILLS = 20 if FULL else 4
HELD = timedelta(seconds=30 if FULL else 3)
CHUNK = 10
"""Of the mortal ones."""

BEGUN = "SELECT begun_at FROM leader_leases WHERE job = $1"
REPLACED = timedelta(seconds=15)

Bury = Callable[[str], Awaitable[int]]


@pytest.fixture
async def shop(quiet_database: Database) -> Tenant:
    tenant = await Tenant.create(quiet_database.pool)
    await tenant.channels(4)
    return tenant


@pytest.fixture
async def let_die(quiet_database: Database, nats_url: str, nats_namespace: str) -> AsyncIterator[Bury]:
    async with killed_relays(quiet_database.url, nats_url, nats_namespace) as live:
        yield live


@asynccontextmanager
async def killed_relays(database_url: str, nats_url: str, namespace: str) -> AsyncIterator[Bury]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "monitor.support.killed_relay", database_url, nats_url, namespace),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )

    async def live(point: str) -> int:
        assert process.stdin and process.stdout
        process.stdin.write(f"{point}\n".encode())
        return int(await asyncio.wait_for(process.stdout.readline(), PLENTY.total_seconds()))

    try:
        yield live
    finally:
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

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        told = await audit.has_all_of(shop.db)

    copies = Counter(event.id for event in told)
    assert out_of_order(told) == []
    assert sum(copies.values()) - len(copies) <= KILLS * CHUNK


async def test_whatever_is_killed_wiped_and_held_up_at_once_the_stream_has_every_event_in_order(
    quiet_database, shop, own_nats, nats_namespace
):
    """A writer stays open while NATS and relays die again and again, and others go on writing."""
    place = (quiet_database.url, own_nats.url, nats_namespace)
    load, fates = Load(shop), list(itertools.product([True, False], POINTS))
    writer, elsewhere = await quiet_database.connect(), await Tenant.create(shop.db)
    await elsewhere.channels(1)

    async with load.running(), killed_relays(*place) as let_die:
        await load.goes_on()
        held = writer.transaction()
        await held.start()
        await elsewhere.on(writer).enqueue()
        while not await is_old(shop.db, writer.get_server_pid()):
            for wipe, point in fates:
                await die_together(own_nats, wipe, let_die, point)
                await outlive_the_lease(shop.db)
        async with running_relay(*place):  # whoever passes by the one that is still open has lost it
            await eventually(lambda: has_come_to(shop.db, writer), within=3 * PLENTY)
        await held.commit()
        await die_together(own_nats, False, let_die, "published")  # a wipe would have everything told again
        await outlive_the_lease(shop.db)
        async with running_relay(*place):
            await load.goes_on()
    async with running_relay(*place):
        told = await Audit(own_nats.url, nats_namespace).has_all_of(shop.db, within=3 * PLENTY)

    assert out_of_order(told) == []


async def die_together(server: NatsServer, wipe: bool, let_die: Bury, point: str) -> None:
    await killed(server)
    if wipe:
        shutil.rmtree(server.data)
    await server.start()
    assert await let_die(point) == -signal.SIGKILL


async def has_come_to(pool: Any, writer: Any) -> bool:
    xid = await writer.fetchval("SELECT pg_current_xact_id()::text")
    return bool(await pool.fetchval("SELECT lo >= $1::text::xid8 FROM relay_state", xid))


async def is_old(pool: Any, pid: int) -> bool:
    query = "SELECT clock_timestamp() - xact_start FROM pg_stat_activity WHERE pid = $1"
    return bool(await pool.fetchval(query, pid) >= HELD)


@asynccontextmanager
async def monitor(
    database_url: str, nats_url: str, namespace: str, **more: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The service itself, in a process of its own."""
    settings = {
        "database_url": database_url,
        "nats_url": nats_url,
        "nats_namespace": namespace,
        "recover_interval": "200ms",
        "log_level": "error",
    } | more
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
    return await pool.fetchval("SELECT holder FROM leader_leases WHERE job = 'relay'")


async def test_a_killed_leader_is_replaced_within_fifteen_seconds(
    quiet_database, shop, nats_url, nats_namespace, unused_tcp_port
):
    audit = Audit(nats_url, nats_namespace)
    place = (quiet_database.url, nats_url, nats_namespace)

    async with monitor(*place) as first:
        leader = await eventually(lambda: holder(shop.db), within=PLENTY)
        async with monitor(*place, http_port=str(unused_tcp_port)):
            await eventually(lambda: answers(unused_tcp_port), within=PLENTY)
            await shop.enqueue()
            await audit.has_all_of(shop.db)
            recovered = await eventually(lambda: shop.db.fetchval(BEGUN, "recover"), within=PLENTY)

            killed_at = await shop.db.fetchval("SELECT clock_timestamp()")
            first.kill()
            await first.wait()
            await shop.enqueue()

            async def replaced() -> bool:
                return await holder(shop.db) not in (leader, None)

            await eventually(replaced, within=PLENTY)
            taken_at = await shop.db.fetchval(BEGUN, "relay")
            told = await audit.has_all_of(shop.db)

            async def recovering() -> bool:
                return bool(await shop.db.fetchval(BEGUN, "recover") > recovered)

            await eventually(recovering, within=PLENTY)

    assert taken_at - killed_at <= REPLACED
    assert len(told) == len({event.id for event in told})


async def test_a_replica_killed_in_the_middle_of_its_rounds_is_replaced_within_fifteen_seconds(
    quiet_database, shop, nats_url, nats_namespace, unused_tcp_port
):
    """What both do is held up by a lock, so that whoever begins them is in them; the clock is the database's."""
    place = (quiet_database.url, nats_url, nats_namespace)
    await shop.enqueue()
    await shop.drain()
    await age(shop.db, timedelta(days=100))
    await shop.enqueue()
    await shop.claim(lease=timedelta(0))
    scheduler, patient = {"retain", "recover"}, {"command_timeout": "120s", "retain_interval": "1s"}
    blocker = await quiet_database.connect()
    lock = blocker.transaction()
    await lock.start()
    await blocker.execute("LOCK TABLE deliveries IN SHARE MODE")

    async def held_by_others_than(*known: UUID) -> dict[str, Any]:
        query = "SELECT * FROM leader_leases WHERE job = ANY ($1) AND holder <> ALL ($2)"
        found = {row["job"]: row for row in await shop.db.fetch(query, list(scheduler), list(known))}
        return found if set(found) == scheduler else {}

    async with monitor(*place, **patient) as first:
        begun = await eventually(held_by_others_than, within=PLENTY)
        [dead] = {row["holder"] for row in begun.values()}
        async with monitor(*place, **patient, http_port=str(unused_tcp_port)):
            await eventually(lambda: answers(unused_tcp_port), within=PLENTY)
            killed_at = await shop.db.fetchval("SELECT clock_timestamp()")
            first.kill()
            await first.wait()
            again = await eventually(lambda: held_by_others_than(dead), within=PLENTY)
            await lock.rollback()

            async def all_done() -> bool:
                """What the statement of the dead one held when it was let go is there in the next round."""
                expired = await shop.events("sending_lease_expired")
                return await shop.count("deliveries") == len(expired) == 4

            await eventually(all_done, within=PLENTY)

    assert {name for name, row in again.items() if row["begun_at"] - killed_at > REPLACED} == set()


async def answers(port: int) -> bool:
    try:
        _, stream = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    stream.close()
    return True


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(quiet_database, shop, nats_url, nats_namespace):
    place = (quiet_database.url, nats_url, nats_namespace)

    async with monitor(*place):
        await eventually(lambda: holder(shop.db), within=PLENTY)

    assert await holder(shop.db) is None
