"""Processes killed anywhere between a due publication and its message: it is published once, or a person decides."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from autopost_contracts.ids import PublicationId
from autopost_monitor.gateway import Gateway as MonitorGateway
from autopost_monitor.repair.publications import CommandRelay
from dispatcher.support.killed_dispatcher import LEASE
from dispatcher.support.running_dispatcher import RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.killed_publishing import POINTS
from ingest.support.publishing_replica import Replica, StartReplica

pytestmark = pytest.mark.time_limit(120)

PLENTY = timedelta(seconds=30)
ONCE = ("published", None, 1)


class Children:
    """Forks processes that kill themselves, and tells how they ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def of(cls, program: str, *words: str) -> "Children":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", program, *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        return cls(process)

    async def start(self, point: str) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{point}\n".encode())
        return int(await self._process.stdout.readline())

    async def ended(self) -> int:
        assert self._process.stdout
        async with asyncio.timeout(PLENTY.total_seconds()):
            return int(await self._process.stdout.readline())

    async def end(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # with whatever it has forked
        await self._process.wait()


@pytest.fixture
async def publishers(database: Database, nats_url: str, nats_namespace: str) -> AsyncIterator[Children]:
    children = await Children.of("ingest.support.killed_publishing", database.url, nats_url, nats_namespace)
    yield children
    await children.end()


@pytest.fixture
async def dispatchers(database: Database, stage: RunningDispatchers) -> AsyncIterator[Children]:
    bucket = msgspec.json.encode(stage.bucket).decode()
    children = await Children.of("dispatcher.support.killed_dispatcher", database.url, stage.simulator, bucket)
    yield children
    await children.end()


async def became(replica: Replica, stage: RunningDispatchers, publication: PublicationId) -> tuple[str, Any, int]:
    """Its status, why it waits, and how many messages the channel shows."""
    shown = await replica.show(publication)
    return shown["status"], shown["pause_code"], len(await stage.accepted())


async def age(database: Database) -> None:
    """As if the dead had been dead for a minute."""
    await database.pool.execute("UPDATE publications SET updated_at = updated_at - interval '1 minute'")
    await database.pool.execute("UPDATE command_outbox SET created_at = created_at - interval '1 minute'")


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_on_the_way_to_the_queue_changes_nothing(
    start_replica: StartReplica,
    stage: RunningDispatchers,
    database: Database,
    publishers: Children,
    point: str,
) -> None:
    """Whoever comes next goes on: another replica, the relay of the monitor, or the command when it comes again."""
    await stage.channels("telegram", 1)
    replica = await start_replica(run=False)
    publication = await replica.scheduled(await database.pool.fetchval("SELECT channel_id FROM channels"))

    await publishers.start(point)
    assert await publishers.ended() == -signal.SIGKILL
    assert (await replica.show(publication))["status"] == ("scheduled" if point == "starting" else "publishing")

    await age(database)
    other = await start_replica()
    await CommandRelay(MonitorGateway(database.pool), other.bus).run_once()  # type: ignore[arg-type]
    async with running_dispatcher(configured(database.url, stage.simulator)):
        await eventually(lambda: is_published(replica, publication), within=PLENTY)
        await other.command(publication, "as it comes again when nobody has acked it")
        await other.loop.round()
    assert await became(replica, stage, publication) == ONCE


async def is_published(replica: Replica, publication: PublicationId) -> bool:
    return str((await replica.show(publication))["status"]) == "published"


async def begun(start_replica: StartReplica, database: Database) -> tuple[Replica, PublicationId]:
    """Its delivery waits for a dispatcher."""
    replica = await start_replica(nats=False, run=False)
    publication = await replica.scheduled(await database.pool.fetchval("SELECT channel_id FROM channels"))
    await replica.loop.round()
    return replica, publication


UNSURE = {"claimed": 0, "uncommitted": 1, "hang": 1}
"""Where nobody knows whether the call was made, and how many messages the channel shows then."""


@pytest.mark.parametrize("point", UNSURE)
async def test_a_dispatcher_killed_before_its_commit_leaves_it_to_a_person(
    start_replica: StartReplica, stage: RunningDispatchers, database: Database, dispatchers: Children, point: str
) -> None:
    [chat] = await stage.channels("telegram", 1)
    replica, publication = await begun(start_replica, database)
    if point == "hang":
        await stage.control("faults", {"chat": int(chat), "times": 1, "effect": {"hang": True, "accept": True}})

    child = await dispatchers.start(point)
    if point == "hang":
        await eventually(lambda: stage.log(), within=PLENTY)
        os.kill(child, signal.SIGKILL)
    assert await dispatchers.ended() == -signal.SIGKILL

    await recover(database)
    async with running_dispatcher(configured(database.url, stage.simulator)):
        assert await became(replica, stage, publication) == ("paused", "unconfirmed", UNSURE[point])
        decision = "sent" if UNSURE[point] else "resend"
        await database.pool.fetchval(
            "SELECT resolve_publication($1, $2, $3, $4, 'ann', 'looked')",
            *(replica.workspace, publication, (await replica.show(publication))["version"], decision),
        )
        await eventually(lambda: is_published(replica, publication), within=PLENTY)
    assert await became(replica, stage, publication) == ONCE


async def recover(database: Database) -> None:
    """What the monitor does when the leases are over."""
    workspace: UUID = await database.pool.fetchval("SELECT workspace_id FROM publications")
    await database.pool.execute(
        "SELECT recover_sending_leases($1, clock_timestamp() + $2::interval)", workspace, LEASE * 2
    )


async def test_the_dead_letter_of_a_refusal_is_there_when_its_dispatcher_dies_after_the_commit(
    start_replica: StartReplica, stage: RunningDispatchers, database: Database, dispatchers: Children
) -> None:
    [chat] = await stage.channels("telegram", 1)
    await stage.control("faults", {"chat": int(chat), "effect": {"catalogue": "telegram.bot_was_kicked"}})
    replica, publication = await begun(start_replica, database)

    await dispatchers.start("committed")
    assert await dispatchers.ended() == -signal.SIGKILL

    assert await became(replica, stage, publication) == ("failed", None, 0)
    letters = await database.pool.fetch("SELECT msg_id FROM command_outbox WHERE subject = 'delivery.commands.dlq'")
    assert [row["msg_id"] for row in letters] == [f"dlq:publish:{publication}:2:1"]


async def test_what_a_dispatcher_committed_before_it_was_killed_is_published(
    start_replica: StartReplica, stage: RunningDispatchers, database: Database, dispatchers: Children
) -> None:
    await stage.channels("telegram", 1)
    replica, publication = await begun(start_replica, database)

    await dispatchers.start("committed")
    assert await dispatchers.ended() == -signal.SIGKILL

    assert await became(replica, stage, publication) == ONCE
