"""`take_leader_lease`, `end_leader_lease`: one replica does a job, and one that stopped renewing is replaced."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from harness.databases import Database

LEASE = timedelta(seconds=10)
HOUR = timedelta(hours=1)
NO_WAIT = timedelta(0)


class Round:
    """One round, asked for and ended in the words of the tests."""

    def __init__(self, database: Database) -> None:
        self._pool = database.pool

    async def take(self, holder: UUID, every: timedelta = HOUR) -> bool:
        answer: bool = await self._pool.fetchval("SELECT take_leader_lease('sweep', $1, $2, $3)", holder, LEASE, every)
        return answer

    async def end(self, holder: UUID) -> None:
        await self._pool.execute("SELECT end_leader_lease('sweep', $1)", holder)

    async def outlive_the_lease(self) -> None:
        await self._pool.execute("UPDATE leader_leases SET lease_until = clock_timestamp() - interval '1 second'")

    async def row(self) -> Any:
        return await self._pool.fetchrow("SELECT *, lease_until - clock_timestamp() AS left FROM leader_leases")


@pytest.fixture
def sweep(database: Database) -> Round:
    return Round(database)


async def test_of_many_that_ask_at_once_one_may(sweep):
    answers = await asyncio.gather(*(sweep.take(uuid4()) for _ in range(8)))

    assert sorted(answers) == [False] * 7 + [True]


async def test_the_holder_renews_by_asking_again(sweep):
    holder = uuid4()
    await sweep.take(holder)
    await sweep.outlive_the_lease()
    begun = (await sweep.row())["begun_at"]

    assert await sweep.take(holder)

    row = await sweep.row()
    assert row["left"] > LEASE / 2
    assert row["begun_at"] == begun


async def test_nobody_else_may_while_the_lease_lasts(sweep):
    await sweep.take(uuid4())

    assert not await sweep.take(uuid4(), NO_WAIT)


async def test_a_round_that_is_done_waits_for_its_time_whoever_asks(sweep):
    holder = uuid4()
    await sweep.take(holder)
    await sweep.end(holder)

    row = await sweep.row()
    assert (row["holder"], row["lease_until"]) == (None, None)
    assert row["done_at"] >= row["begun_at"]
    assert not await sweep.take(holder)
    assert not await sweep.take(uuid4())
    assert await sweep.take(uuid4(), NO_WAIT)


async def test_a_round_that_was_never_ended_does_not_wait_for_its_time(sweep):
    await sweep.take(uuid4())
    await sweep.outlive_the_lease()
    heir = uuid4()

    assert await sweep.take(heir)

    row = await sweep.row()
    assert row["holder"] == heir
    assert row["left"] > LEASE / 2


async def test_who_has_lost_a_round_cannot_end_it(sweep):
    loser, heir = uuid4(), uuid4()
    await sweep.take(loser)
    await sweep.outlive_the_lease()
    await sweep.take(heir)

    await sweep.end(loser)

    row = await sweep.row()
    assert (row["holder"], row["done_at"]) == (heir, None)


async def test_rounds_are_apart(sweep, database):
    await sweep.take(uuid4())

    assert await database.pool.fetchval("SELECT take_leader_lease('another', $1, $2, $3)", uuid4(), LEASE, HOUR)
