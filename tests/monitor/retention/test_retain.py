"""Retention as the monitor does it: whole rounds, in its own role, each guard once among replicas."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.jobs import keep_of, open_store, schedule_maintenance, schedule_queue_jobs
from autopost_monitor.leader.leader import Leadership
from autopost_monitor.leader.periodic import Scheduler
from autopost_monitor.retention.events import EventRetention
from autopost_monitor.retention.gateway import RetainGateway
from autopost_monitor.retention.payloads import PayloadRetention
from autopost_monitor.retention.retain import DeletionBatches, Retention
from autopost_runtime.config.load import ConfigError, load
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.storage.objects import open_objects
from db.support.ages import age, partitions
from db.support.builders import Tenant
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.staging_ingest import keys
from monitor.support.slow_store import configured

SMALL = DeletionBatches(2, timedelta(0))
MONTH = timedelta(days=30)
LONG_AGO = timedelta(days=100)


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    made = await Tenant.create(database.pool)
    await made.channels(3)
    return made


@pytest.fixture
async def gateway(database: Database) -> AsyncIterator[RetainGateway]:
    async with open_database(MonitorConfig(database_url=database.url), "monitor") as opened:
        yield RetainGateway(opened)


async def test_a_round_forgets_deliveries_and_then_their_messages(tenant: Tenant, gateway: RetainGateway) -> None:
    for _ in range(3):
        await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, LONG_AGO)
    await tenant.enqueue()
    config = MonitorConfig(database_url="postgresql://x/x", retain_batch=2, retain_pause=timedelta(0))

    await Retention(gateway, config).run_once()

    assert await tenant.count("deliveries") == 3
    assert await tenant.count("messages") == await tenant.count("renderings") == 1


async def test_an_old_partition_goes_in_one_round(tenant: Tenant, gateway: RetainGateway) -> None:
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, timedelta(days=60))

    await EventRetention(gateway, MONTH, SMALL, relayed=False).run_once()

    assert await partitions(tenant.db) == []
    assert [event["what"] for event in await tenant.events()] == ["checkpoint"] * 3


async def test_a_partition_that_the_relay_has_not_passed_stays(tenant: Tenant, gateway: RetainGateway) -> None:
    await tenant.enqueue()
    await age(tenant.db, timedelta(days=60))

    await EventRetention(gateway, MONTH, SMALL, relayed=True).run_once()

    assert len(await tenant.events("enqueue")) == 3


async def test_a_partition_that_somebody_reads_goes_when_that_is_over(
    database: Database, tenant: Tenant, gateway: RetainGateway
) -> None:
    await tenant.enqueue()
    await age(tenant.db, timedelta(days=60))
    reader = await database.connect()
    reading = reader.transaction()
    await reading.start()
    await reader.fetchval("SELECT count(*) FROM events")

    round_ = asyncio.create_task(EventRetention(gateway, MONTH, SMALL, relayed=False).run_once())
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%drop_event%'"
    await eventually(lambda: tenant.db.fetchval(waits))
    await reading.rollback()
    await round_

    assert await partitions(tenant.db) == []


PERIODS = ["retain_events", "retain_deliveries", "retain_messages", "origin_retention", "retain_payloads"]


@pytest.mark.parametrize("period", PERIODS)
def test_a_period_that_must_be_a_mistake_is_refused(period: str) -> None:
    name = f"AUTOPOST_{period.upper()}"
    with pytest.raises(ConfigError, match=name):
        load(MonitorConfig, {"AUTOPOST_DATABASE_URL": "postgresql://x/x", name: "30s"})


def test_media_is_kept_as_the_variables_say() -> None:
    said = {"ORIGIN_RETENTION": "9d", "ORIGIN_RETENTION_LARGE_VIDEO": "3d", "LARGE_VIDEO_BYTES": "4096"}
    given = {f"AUTOPOST_{name}": value for name, value in said.items()}

    keep = keep_of(load(MonitorConfig, {"AUTOPOST_DATABASE_URL": "postgresql://x/x"} | given))

    assert (keep.origin, keep.large_video, keep.large_bytes) == (timedelta(days=9), timedelta(days=3), 4096)


async def test_payloads_leave_by_age_and_media_stays(database: Database, s3: Bucket) -> None:
    workspaces = [uuid4(), uuid4()]
    async with open_objects(configured(database.url, s3)) as objects:
        for workspace in workspaces:
            for place in range(3):
                await objects.put(f"{workspace}/payloads/{place}.json", b"{}", "application/json")
            await objects.put(f"{workspace}/media/cat", b"cat", "image/png")

        await PayloadRetention(objects, timedelta(hours=1), SMALL).run_once()
        assert len(await keys(s3)) == 8
        await PayloadRetention(objects, timedelta(seconds=-5), SMALL).run_once()

    assert await keys(s3) == {f"{workspace}/media/cat" for workspace in workspaces}


async def test_a_store_that_is_away_ends_the_round_and_not_the_service() -> None:
    class Away:
        async def folders(self) -> AsyncIterator[str]:
            raise OSError
            yield ""

    await PayloadRetention(Away(), MONTH, SMALL).run_once()  # type: ignore[arg-type]


@asynccontextmanager
async def replica(config: MonitorConfig, asked: Counter[str]) -> AsyncIterator[None]:
    """The guards of one monitor, as it wires them."""

    class Counted(Gateway):
        async def active_workspaces(self) -> list[WorkspaceId]:
            asked["workspaces"] += 1
            return await super().active_workspaces()

        async def ensure_event_partitions(self, ahead: timedelta) -> int:
            asked["partitions"] += 1
            return await super().ensure_event_partitions(ahead)

    service = Service("monitor")
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        open_store(config) as objects,
    ):
        gateway = Counted(database)
        scheduler = Scheduler(service, Leadership(gateway, uuid4()))
        schedule_queue_jobs(config, gateway, bus, scheduler)
        schedule_maintenance(config, database, objects, scheduler)
        yield
        service.stop()
        await scheduler.finish()
    await service.end_tasks()


async def test_of_two_replicas_each_guard_acts_once(database: Database, tenant: Tenant, s3: Bucket) -> None:
    await tenant.enqueue()
    await tenant.drain()
    await age(tenant.db, timedelta(days=60))
    await tenant.db.execute("UPDATE channel_counters SET total = total + 1 WHERE side = 'started'")
    orphaned = await Tenant.create(database.pool)
    await orphaned.channel()
    await orphaned.enqueue()
    await orphaned.claim(lease=timedelta(0))
    asked: Counter[str] = Counter()
    config = msgspec.structs.replace(configured(database.url, s3), recover_interval=timedelta(hours=1))
    guards = {
        "recover",
        "bot actions",
        "commands",
        "missed publications",
        "partitions",
        "retain",
        "retain events",
        "payloads",
        "collect",
        "reconcile",
        "recount",
        "stuck",
    }

    async def all_done() -> bool:
        done = await tenant.db.fetch("SELECT job FROM leader_leases WHERE done_at IS NOT NULL AND holder IS NULL")
        return {row["job"] for row in done} == guards

    async with replica(config, asked), replica(config, asked):
        await eventually(all_done, within=timedelta(minutes=1))

    assert asked == {"workspaces": 2, "partitions": 1}  # recover and bot actions ask for the workspaces
    assert len(await orphaned.events("sending_lease_expired")) == 1
    assert [event["what"] for event in await tenant.events()] == ["checkpoint"] * 3
    assert await tenant.db.fetch("SELECT * FROM channel_drift($1)", tenant.workspace) == []
    wrong: Any = await tenant.db.fetchval("SELECT max(total) FROM channel_counters WHERE side = 'ended'")
    assert wrong == 2
