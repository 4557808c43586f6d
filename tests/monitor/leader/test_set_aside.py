"""What fails for one workspace, table or condition is set aside by the monitor: all others are looked after."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_monitor.alerts.evaluate import Alerts
from autopost_monitor.alerts.gateway import AlertGateway
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.leader.periodic import run_periodically
from autopost_monitor.repair.action_watchdog import ActionWatchdog
from autopost_monitor.repair.gateway import ReconcileGateway
from autopost_monitor.repair.reconcile import Recount
from autopost_monitor.repair.recover import Recovery
from autopost_monitor.retention.gateway import RetainGateway
from autopost_monitor.retention.retain import Retention
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.set_aside import INSTALLATION
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.pool import Database as Pool
from autopost_runtime.postgres.pool import open_database
from db.support.builders import Tenant, permanent
from harness.databases import Database
from harness.eventually import eventually

TICK = timedelta(milliseconds=1)


class Woken(Bus):
    def __init__(self) -> None:
        self.woken: list[str] = []

    def wake(self, subject: str) -> None:
        self.woken.append(subject)


@pytest.fixture
async def pool(database: Database) -> AsyncIterator[Pool]:
    async with open_database(MonitorConfig(database_url=database.url), "monitor") as opened:
        yield opened


async def _set_aside(database: Database) -> list[tuple[UUID, str, int]]:
    rows = await database.pool.fetch("SELECT workspace_id, work, failures FROM set_aside ORDER BY work")
    return [tuple(row) for row in rows]


async def _break(database: Database, tenant: Tenant, table: str) -> None:
    """Whatever is written of this tenant's rows fails."""
    await database.pool.execute(
        f"CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF OLD.workspace_id = '{tenant.workspace}' THEN RAISE numeric_value_out_of_range; END IF; "
        f"RETURN coalesce(NEW, OLD); END $$; "
        f"CREATE TRIGGER trip BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION trip()"
    )


async def _stale(database: Database) -> Tenant:
    """A tenant with a delivery whose worker went silent."""
    tenant = await Tenant.create(database.pool)
    await tenant.backlog(await tenant.channel(), 1)
    await tenant.claim(lease=timedelta(seconds=-1))
    return tenant


async def test_a_round_that_fails_is_made_again_and_named_until_it_works(pool: Pool, database: Database) -> None:
    service, scheduler = Service("monitor"), 0

    async def fails_twice() -> None:
        nonlocal scheduler
        scheduler += 1
        if scheduler <= 2:
            raise KeyError("a mistake of ours")

    service.spawn(run_periodically(TICK, "sweep", fails_twice, service, Gateway(pool)), "sweep")
    await eventually(lambda: scheduler == 2)
    named = await eventually(lambda: _set_aside(database))
    await eventually(lambda: scheduler > 3)
    afterwards = await _set_aside(database)
    code, is_running = service.exit_code, not service.stopping.is_set()
    service.stop()
    await service.end_tasks()

    assert (named[0][:2], afterwards) == ((INSTALLATION, "sweep"), [])
    assert (code, is_running) == (0, True)


async def test_deliveries_of_other_workspaces_are_taken_back_although_one_fails(pool: Pool, database: Database) -> None:
    broken, sound = await _stale(database), await _stale(database)
    await _break(database, broken, "deliveries")
    bus = Woken()
    recovery = Recovery(Gateway(pool), bus, Topology("test"), timedelta(minutes=5))

    await recovery.run_once()

    assert [row["status"] for row in await sound.deliveries()] == ["retry"]
    assert [row["status"] for row in await broken.deliveries()] == ["sending"]
    assert await _set_aside(database) == [(broken.workspace, "recover", 1)]
    assert bus.woken == [Topology("test").wakeup_dispatch(WorkspaceId(sound.workspace))]


async def test_counters_of_other_workspaces_are_corrected_although_one_fails(pool: Pool, database: Database) -> None:
    tenants = [await Tenant.create(database.pool) for _ in range(2)]
    for tenant in tenants:
        await tenant.backlog(await tenant.channel(), 1)
        await database.pool.execute("UPDATE channel_due SET next_due_at = 'infinity'")
    await _break(database, tenants[0], "channel_due")

    await Recount(ReconcileGateway(pool), Gateway(pool)).run_once()

    due = await database.pool.fetch("SELECT workspace_id FROM channel_due WHERE next_due_at < 'infinity'")
    assert [row["workspace_id"] for row in due] == [tenants[1].workspace]
    assert await _set_aside(database) == [(tenants[0].workspace, "recount", 1)]


async def test_a_table_that_cannot_be_cleared_keeps_no_other_from_being_cleared(pool: Pool, database: Database) -> None:
    tenant = await Tenant.create(database.pool)
    await tenant.backlog(await tenant.channel(), 1)
    await tenant.commit(permanent(await tenant.claim_one()))
    await database.pool.execute(
        "INSERT INTO ingest_runs (workspace_id, kind, finished_at) VALUES ($1, 'push', now())", tenant.workspace
    )
    await _break(database, tenant, "deliveries")
    config = MonitorConfig(
        database_url=database.url, retain_deliveries=timedelta(seconds=-9), retain_ingest_runs=timedelta(seconds=-9)
    )

    await Retention(RetainGateway(pool), config, Gateway(pool)).run_once()

    assert await database.pool.fetchval("SELECT count(*) FROM deliveries") == 1
    assert await database.pool.fetchval("SELECT count(*) FROM ingest_runs") == 0
    assert (INSTALLATION, "retain deliveries", 1) in await _set_aside(database)


async def test_a_condition_that_cannot_be_asked_silences_no_other(pool: Pool, database: Database) -> None:
    tenant = await Tenant.create(database.pool)
    await tenant.backlog(await tenant.channel(), 1)
    await tenant.commit(permanent(await tenant.claim_one()))
    await database.pool.execute(
        "CREATE OR REPLACE FUNCTION condition_dead(p_at_least bigint) "
        "RETURNS TABLE (workspace_id uuid, found bigint, since timestamptz, causes jsonb) LANGUAGE sql STABLE "
        "AS $$ SELECT w.workspace_id, 1 / (p_at_least - p_at_least), now(), '[]'::jsonb FROM workspaces w "
        "WHERE p_at_least IS NOT NULL $$"
    )
    config = MonitorConfig(database_url=database.url, alert_failed_permanent=0)

    await Alerts(AlertGateway(pool), config, ["webhook"], Gateway(pool)).run_once()

    opened = await database.pool.fetch("SELECT condition FROM alerts")
    assert [row["condition"] for row in opened] == ["failed_permanent"]
    assert await _set_aside(database) == [(INSTALLATION, "alert conditions", 1)]


async def test_an_error_of_the_whole_database_sets_nobody_aside(database: Database) -> None:
    service, asked = Service("monitor"), 0

    async def away() -> None:
        nonlocal asked
        asked += 1
        raise ConnectionResetError

    notes: Any = None
    service.spawn(run_periodically(TICK, "sweep", away, service, notes), "sweep")
    async with asyncio.timeout(10):
        await eventually(lambda: asked >= 5)
    code = service.exit_code
    service.stop()
    await service.end_tasks()

    assert (code, await _set_aside(database)) == (0, [])


async def test_actions_of_other_workspaces_run_into_their_timeout_although_one_fails(
    pool: Pool, database: Database
) -> None:
    tenants = [await Tenant.create(database.pool) for _ in range(3)]
    for tenant in tenants:
        await database.pool.execute(
            "INSERT INTO bot_actions (workspace_id, chat_id, action_id, action_type, created_at, seq) "
            "VALUES ($1, '7', 'a', 'summarize', now() - interval '3 hours', advance_chat($1, '7'))",
            tenant.workspace,
        )
    await _break(database, tenants[1], "bot_actions")

    await ActionWatchdog(Gateway(pool), Woken(), Topology(), timedelta(hours=2)).run_once()

    left = await database.pool.fetch("SELECT workspace_id FROM bot_actions WHERE status = 'processing'")
    assert [row["workspace_id"] for row in left] == [tenants[1].workspace]
    assert await _set_aside(database) == [(tenants[1].workspace, "bot actions", 1)]
