"""The same command again and again is one call: at once, afterwards, from a stream that was wiped or restored."""

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from autopost_cli.embedded.nats import NatsServer
from autopost_contracts.ids import PublicationId
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.bus import ensure_streams
from dispatcher.support.running_dispatcher import RunningDispatchers, configured, running_dispatcher
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.publishing_replica import Replica, StartReplica

pytestmark = pytest.mark.time_limit(120)

AT_ONCE = 50
PLENTY = timedelta(seconds=30)


async def is_published(replica: Replica, publication: PublicationId) -> bool:
    return str((await replica.show(publication))["status"]) == "published"


async def repeat(replica: Replica, publication: PublicationId, when: str) -> None:
    stored = await asyncio.gather(*(replica.command(publication, f"{when} {nth}") for nth in range(AT_ONCE)))
    assert all(stored)


async def test_a_command_fifty_times_at_once_and_after_success_is_one_call(
    start_replica: StartReplica, stage: RunningDispatchers, database: Database
) -> None:
    await stage.channels("telegram", 1)
    channel = await database.pool.fetchval("SELECT channel_id FROM channels")
    before = await start_replica(run=False)
    publication = await before.scheduled(channel)
    assert (await before.gateway.due_publications(10)).due
    await repeat(before, publication, "at once")

    replicas = [await start_replica() for _ in range(2)]
    async with running_dispatcher(configured(database.url, stage.simulator)):
        await eventually(lambda: is_published(before, publication), within=PLENTY)
        await repeat(before, publication, "after success")
        await eventually(replicas[0].has_settled, within=PLENTY)

    assert [line["status"] for line in await stage.log()] == [200]


class Backups:
    """The files of a NATS server."""

    def __init__(self, server: NatsServer, folder: Path) -> None:
        self._server, self._folder = server, folder

    async def keep(self) -> None:
        await self._server.stop()
        shutil.copytree(self._server.data, self._folder)
        await self._server.start()

    async def wipe(self) -> None:
        await self._server.stop()
        shutil.rmtree(self._server.data)
        await self._server.start()

    async def restore(self) -> None:
        await self._server.stop()
        shutil.rmtree(self._server.data)
        shutil.copytree(self._folder, self._server.data)
        await self._server.start()


async def test_a_stream_that_is_wiped_or_restored_from_an_old_backup_leads_to_no_second_call(
    start_replica: StartReplica,
    stage: RunningDispatchers,
    database: Database,
    own_nats: NatsServer,
    nats_namespace: str,
    tmp_path: Path,
) -> None:
    backups = Backups(own_nats, tmp_path / "backup")
    await ensure_streams(own_nats.url, Topology(nats_namespace))
    await stage.channels("telegram", 3)
    channels = [row["channel_id"] for row in await database.pool.fetch("SELECT channel_id FROM channels")]
    before = await start_replica(run=False, server=own_nats.url)
    first = await before.scheduled(channels[0])
    await before.loop.round()  # its command is in the stream, and nobody handles it yet
    await backups.keep()

    replica = await start_replica(server=own_nats.url)
    async with running_dispatcher(configured(database.url, stage.simulator)):
        await eventually(lambda: is_published(replica, first), within=PLENTY)
        await backups.wipe()
        second = await replica.scheduled(channels[1])
        await eventually(lambda: is_published(replica, second), within=PLENTY)
        await backups.restore()
        await eventually(lambda: replica.bus.bound(replica.bus.topology.publish_commands), within=PLENTY)
        await eventually(replica.has_settled, within=PLENTY)
        third = await replica.scheduled(channels[2])
        await eventually(lambda: is_published(replica, third), within=PLENTY)

    assert len({line["chat"] for line in await stage.log()}) == len(await stage.log()) == 3


async def test_a_command_that_was_lost_with_its_stream_is_made_up_for(
    start_replica: StartReplica,
    stage: RunningDispatchers,
    database: Database,
    own_nats: NatsServer,
    nats_namespace: str,
    tmp_path: Path,
) -> None:
    await ensure_streams(own_nats.url, Topology(nats_namespace))
    await stage.channels("telegram", 1)
    before = await start_replica(run=False, server=own_nats.url)
    publication = await before.scheduled(await database.pool.fetchval("SELECT channel_id FROM channels"))
    await before.loop.round()
    await Backups(own_nats, tmp_path).wipe()
    await database.pool.execute("UPDATE publications SET updated_at = updated_at - interval '1 minute'")

    replica = await start_replica(server=own_nats.url)
    async with running_dispatcher(configured(database.url, stage.simulator)):
        await eventually(lambda: is_published(replica, publication), within=PLENTY)

    assert len(await stage.log()) == 1
