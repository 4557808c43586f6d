"""The guards that look for what does not agree, and what they say of it as metrics."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from autopost_monitor.config import MonitorConfig
from autopost_monitor.repair.gateway import ReconcileGateway
from autopost_monitor.repair.reconcile import EventReconciliation, ReconcileMetrics, Recount
from autopost_monitor.repair.stuck_jobs import StuckAfter, StuckMetrics, StuckPosts
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.telemetry import metrics
from db.support.builders import Tenant
from db.support.senders import make_sender
from db.support.staging import Staging
from harness.databases import Database

AT_ONCE = timedelta(0)
PATIENCE = StuckAfter(staged=timedelta(minutes=10), deadline=timedelta(hours=6), reply=timedelta(minutes=10))


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    made = await Tenant.create(database.pool)
    await made.channel()
    return made


@pytest.fixture
async def gateway(database: Database) -> AsyncIterator[ReconcileGateway]:
    async with open_database(MonitorConfig(database_url=database.url), "monitor") as opened:
        yield ReconcileGateway(opened)


def shown() -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if not line.startswith("#")]


async def lose_deliveries(tenant: Tenant) -> None:
    async with tenant.db.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute("DELETE FROM deliveries")


async def test_a_lost_delivery_is_counted_over_several_rounds(tenant: Tenant, gateway: ReconcileGateway) -> None:
    await tenant.enqueue()
    await tenant.drain()
    await lose_deliveries(tenant)
    reconciliation = EventReconciliation(gateway, chunk=1, chunks=2, pause=AT_ONCE)
    watch = ReconcileMetrics(gateway)

    for _ in range(2):
        await reconciliation.run_once()
    await watch.run_once()

    assert 'autopost_orphan_events{what="delivery"} 3.0' in shown()
    assert 'autopost_orphan_events{what="channel"} 0.0' in shown()


async def test_the_time_for_which_events_have_a_place_is_a_metric(gateway: ReconcileGateway) -> None:
    await ReconcileMetrics(gateway).run_once()

    [line] = [line for line in shown() if line.startswith("autopost_event_partitions_ahead_seconds ")]
    assert float(line.split()[1]) > timedelta(days=30).total_seconds()


async def test_a_counter_that_drifted_is_put_right_and_counted(tenant: Tenant, gateway: ReconcileGateway) -> None:
    metrics.forget()
    await tenant.db.execute("UPDATE channel_counters SET total = total + 3 WHERE side = 'started'")

    await Recount(gateway).run_once()
    await Recount(gateway).run_once()

    assert await tenant.db.fetch("SELECT * FROM channel_drift($1)", tenant.workspace) == []
    assert 'autopost_counters_corrected_total{what="in_flight"} 1.0' in shown()


async def test_stuck_posts_and_replies_are_measured_and_what_helps_is_done(
    tenant: Tenant, gateway: ReconcileGateway
) -> None:
    staging = Staging(tenant, await make_sender(tenant))
    for _ in range(2):
        await staging.stage()
    await staging.lease(limit=1)
    await tenant.db.execute(
        "UPDATE staged_posts SET next_attempt_at = now() - interval '1 hour', "
        "lease_until = CASE status WHEN 'fetching' THEN now() - interval '1 hour' END"
    )
    await tenant.db.execute(
        "INSERT INTO bot_outbox (workspace_id, chat_id, inbound_provider_message_id, response_hash, created_at) "
        "VALUES ($1, '1', '1', 'x', now() - interval '1 hour')",
        tenant.workspace,
    )
    watch = StuckMetrics(gateway, PATIENCE)

    await watch.run_once()
    before = [line for line in shown() if "stuck" in line]
    await StuckPosts(gateway, PATIENCE).run_once()
    await watch.run_once()
    after = [line for line in shown() if "stuck" in line]

    assert 'autopost_stuck_staged_posts{why="lost"} 1.0' in before
    assert 'autopost_stuck_staged_posts{why="untaken"} 1.0' in before
    assert "autopost_stuck_bot_replies 1.0" in before
    assert 'autopost_stuck_staged_posts{why="lost"} 0.0' in after
