"""A publication goes out at the time that it has now, by the clock of the database, and not too soon after another."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from autopost_contracts.ids import PublicationId
from dispatcher.support.running_dispatcher import RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.publishing_replica import Replica, StartReplica

pytestmark = pytest.mark.time_limit(120)

PLENTY = timedelta(seconds=30)
SKEWS = (600, -600)
SECOND = timedelta(seconds=1)
MOST_EARLY = timedelta(milliseconds=20)
"""A call may be early at the receiver: the one before it travelled longer."""


async def has(replica: Replica, publication: PublicationId, status: str) -> bool:
    return str((await replica.show(publication))["status"]) == status


async def channel_of(database: Database) -> UUID:
    channel: UUID = await database.pool.fetchval("SELECT channel_id FROM channels")
    return channel


async def test_a_new_time_while_the_command_is_on_its_way_is_the_one_that_counts(
    start_replica: StartReplica, stage: RunningDispatchers, database: Database
) -> None:
    await stage.channels("telegram", 1)
    before = await start_replica(run=False)
    publication = await before.scheduled(await channel_of(database))
    await before.loop.round()  # its command is in the stream, and nobody handles it yet

    await before.schedule(publication, timedelta(hours=1))
    replica = await start_replica()
    await eventually(replica.has_settled, within=PLENTY)
    assert await has(replica, publication, "scheduled")
    at = await replica.schedule(publication)
    async with running_dispatcher(configured(database.url, stage.simulator)):
        await eventually(lambda: has(replica, publication, "published"), within=PLENTY)

    [call] = await stage.log()
    assert datetime.fromisoformat(call["arrived_at"]) >= at


@asynccontextmanager
async def skewed(*words: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ingest.support.skewed_publishing", *words, cwd=Path(__file__).parents[2]
    )
    yield
    assert process.returncode is None
    process.kill()
    await process.wait()


async def test_replicas_whose_clocks_are_wrong_start_nothing_early_late_or_twice(
    start_replica: StartReplica, tenant, database: Database, nats_url: str, nats_namespace: str
) -> None:
    replica = await start_replica(run=False)
    channels = await tenant.channels(3)
    async with AsyncExitStack() as running:
        for skew in SKEWS:
            await running.enter_async_context(skewed(str(skew), database.url, nats_url, nats_namespace))
        first = await replica.scheduled(channels[0])
        await eventually(lambda: replica.begun(first), within=PLENTY)  # at least one is there

        soon = await replica.scheduled(channels[1], SECOND)
        later = await replica.scheduled(channels[2], timedelta(minutes=5))
        await database.pool.execute("UPDATE publications SET late_after = '1 minute'")
        await eventually(lambda: replica.begun(soon), within=PLENTY)

    assert await has(replica, soon, "publishing")
    assert await has(replica, later, "scheduled")
    late = await database.pool.fetchval(
        "SELECT min(d.created_at - p.scheduled_at) FROM publications p JOIN deliveries d USING (delivery_id)"
    )
    assert timedelta(0) <= late
    assert await tenant.count("deliveries") == 2


async def test_two_dispatchers_keep_three_seconds_between_the_publications_of_a_channel_and_their_retries(
    start_replica: StartReplica, stage: RunningDispatchers, database: Database
) -> None:
    [chat] = await stage.channels("telegram", 1, max_parallel=5)
    conflict = {"catalogue": "telegram.terminated_by_other_get_updates"}
    await stage.control("faults", {"chat": int(chat), "times": 1, "effect": conflict})
    replica = await start_replica(nats=False, run=False)
    made = [await replica.scheduled(await channel_of(database), text=f"ad {nth}") for nth in range(2)]
    await replica.loop.round()

    config = configured(database.url, stage.simulator)
    async with running_dispatcher(config), running_dispatcher(config):
        for publication in made:
            await eventually(lambda one=publication: has(replica, one, "published"), within=PLENTY)

    came = sorted(datetime.fromisoformat(line["arrived_at"]) for line in await stage.log())
    assert len(came) == 3
    assert all(later - earlier >= 3 * SECOND - MOST_EARLY for earlier, later in itertools.pairwise(came))
