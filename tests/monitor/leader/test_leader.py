"""Turns: a round is done once among replicas, and work stops when its turn is lost."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.leader.leader import Leadership
from autopost_monitor.leader.periodic import Scheduler
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.postgres.pool import open_database
from harness.databases import Database
from harness.eventually import eventually

LEASE = timedelta(seconds=4)
SHORT = LEASE / 10
PLENTY = timedelta(seconds=30)
HOUR = timedelta(hours=1)


class Work:
    """Counts how often it was begun and done; ``open`` lets it end."""

    def __init__(self) -> None:
        self.begun = self.done = self.cut = 0
        self.open = asyncio.Event()

    async def __call__(self) -> None:
        self.begun += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cut += 1
            raise
        self.done += 1


@pytest.fixture
async def gateway(database: Database) -> AsyncIterator[Gateway]:
    async with open_database(MonitorConfig(database_url=database.url), "monitor") as opened:
        yield Gateway(opened)


@pytest.fixture
def work() -> Work:
    return Work()


async def test_of_two_replicas_one_does_the_round(gateway, work):
    replicas = [Leadership(gateway, uuid4()) for _ in range(2)]
    work.open.set()

    did = await asyncio.gather(*(leadership.run_if_leader("sweep", HOUR, work) for leadership in replicas))
    again = await asyncio.gather(*(leadership.run_if_leader("sweep", HOUR, work) for leadership in replicas))

    assert sorted(did) == [False, True]
    assert again == [False, False]
    assert work.done == 1


async def test_rounds_of_two_replicas_never_run_at_once_and_come_as_often_as_asked(gateway):
    services = [Service("monitor") for _ in range(2)]
    at_work = most = done = 0

    async def work() -> None:
        nonlocal at_work, most, done
        at_work, most = at_work + 1, max(most, at_work + 1)
        await asyncio.sleep(0)
        at_work, done = at_work - 1, done + 1

    loop = asyncio.get_running_loop()
    began = loop.time()
    interval = timedelta(milliseconds=50)
    for service in services:
        Scheduler(service, Leadership(gateway, uuid4())).on_leader("sweep", interval, work)
    await eventually(lambda: done >= 10, within=PLENTY)
    for service in services:
        service.stop()
        await service.end_tasks()

    assert most == 1
    assert done <= 1 + (loop.time() - began) / interval.total_seconds()


async def test_long_work_keeps_its_turn_beyond_the_lease(gateway, database, work):
    leadership = Leadership(gateway, uuid4(), LEASE)
    first = await database.pool.fetchval("SELECT clock_timestamp()") + LEASE * 2

    doing = asyncio.create_task(leadership.run_if_leader("sweep", HOUR, work))
    await eventually(lambda: database.pool.fetchval("SELECT count(*) FROM leader_leases"), within=PLENTY)

    async def renewed() -> bool:
        lease = await database.pool.fetchval("SELECT lease_until FROM leader_leases")
        assert not await gateway.take_leader_lease("sweep", uuid4(), LEASE, HOUR)
        return bool(lease and lease > first)

    await eventually(renewed, within=PLENTY)
    work.open.set()
    assert await doing
    assert (work.done, work.cut) == (1, 0)


async def test_work_whose_turn_was_taken_is_cut_short_at_the_next_renewal(gateway, database, work):
    class Asked:
        """Keeps what was answered to each renewal."""

        def __init__(self) -> None:
            self.answers: list[bool] = []

        async def take_leader_lease(self, *asked: Any) -> bool:
            self.answers.append(await gateway.take_leader_lease(*asked))
            return self.answers[-1]

        async def end_leader_lease(self, *_: object) -> None:
            raise AssertionError("not its own any more")

    asked = Asked()
    doing = asyncio.create_task(Leadership(asked, uuid4(), LEASE).run_if_leader("sweep", HOUR, work))
    await eventually(lambda: work.begun)

    thief = uuid4()
    await database.pool.execute("UPDATE leader_leases SET holder = $1, lease_until = 'infinity'", thief)

    assert not await asyncio.wait_for(doing, PLENTY.total_seconds())
    assert (asked.answers[0], asked.answers.count(False), asked.answers[-1]) == (True, 1, False)
    assert (work.done, work.cut) == (0, 1)
    assert await database.pool.fetchval("SELECT holder FROM leader_leases") == thief


async def test_work_stops_before_another_may_begin_when_the_database_does_not_answer(work, monkeypatch):
    class Deaf:
        """Answers once, then never again."""

        def __init__(self) -> None:
            self.asked = 0
            self.taken_at = 0.0

        async def take_leader_lease(self, *_: object) -> bool:
            self.asked += 1
            if self.asked > 1:
                await asyncio.Event().wait()
            self.taken_at = loop.time()
            return True

        async def end_leader_lease(self, *_: object) -> None:
            raise AssertionError("not its own any more")

    loop, deaf, given_up_at = asyncio.get_running_loop(), Deaf(), []

    def timeout_at(when: float) -> asyncio.Timeout:
        given_up_at.append(when)
        return asyncio.Timeout(when)

    monkeypatch.setattr(asyncio, "timeout_at", timeout_at)
    assert not await Leadership(deaf, uuid4(), SHORT).run_if_leader("sweep", HOUR, work)

    assert work.cut == 1
    assert deaf.asked > 1
    assert max(given_up_at) < deaf.taken_at + SHORT.total_seconds()


async def test_a_renewal_that_failed_is_tried_again(work):
    class Shaky:
        def __init__(self) -> None:
            self.asked = 0

        async def take_leader_lease(self, *_: object) -> bool:
            self.asked += 1
            if self.asked == 2:
                raise asyncpg.ConnectionDoesNotExistError
            return True

        async def end_leader_lease(self, *_: object) -> None: ...

    gateway = Shaky()
    doing = asyncio.create_task(Leadership(gateway, uuid4(), LEASE).run_if_leader("sweep", HOUR, work))
    await eventually(lambda: gateway.asked >= 4, within=PLENTY)
    work.open.set()

    assert await doing


async def test_a_round_that_failed_is_done_again_by_its_holder(gateway, work):
    leadership = Leadership(gateway, uuid4())

    async def fail() -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await leadership.run_if_leader("sweep", HOUR, fail)
    work.open.set()

    assert await leadership.run_if_leader("sweep", HOUR, work)
