"""Schedule the periodic jobs: recovery, retention, media deletion, reconciliation, stuck work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.set_aside import Notes
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.pool import Database
from autopost_runtime.storage.objects import Objects, open_objects
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.leader.periodic import Scheduler
from autopost_monitor.repair.action_watchdog import ActionMetrics, ActionWatchdog
from autopost_monitor.repair.gateway import ReconcileGateway
from autopost_monitor.repair.publications import CommandRelay, MissedPublications
from autopost_monitor.repair.reconcile import EventReconciliation, ReconcileMetrics, Recount
from autopost_monitor.repair.recover import Recovery
from autopost_monitor.repair.stuck_jobs import StuckAfter, StuckMetrics, StuckPosts
from autopost_monitor.retention.config import RetainConfig
from autopost_monitor.retention.events import EventRetention
from autopost_monitor.retention.gateway import RetainGateway
from autopost_monitor.retention.media_gc import MediaCollector
from autopost_monitor.retention.media_gc_gateway import Keep, MediaGcGateway
from autopost_monitor.retention.payloads import PayloadRetention
from autopost_monitor.retention.retain import DeletionBatches, Retention

PARTITION_CHECK = timedelta(hours=1)
COMMAND_RELAY = timedelta(seconds=2)


@asynccontextmanager
async def open_store(config: RetainConfig) -> AsyncIterator[Objects | None]:
    """``None`` when no object store is configured."""
    if config.s3_endpoint is None:
        yield None
        return
    async with open_objects(config) as objects:
        yield objects


def schedule_queue_jobs(config: MonitorConfig, gateway: Gateway, bus: Bus, scheduler: Scheduler) -> None:
    """Recover what workers that died have left: leases and actions of bots; create event partitions."""
    recovery = Recovery(gateway, bus, Topology(config.nats_namespace), config.claimed_lease)
    scheduler.on_leader("recover", config.recover_interval, recovery.run_once)
    watchdog = ActionWatchdog(
        gateway, bus, Topology(config.nats_namespace), timedelta(hours=config.bot_action_max_processing_hours)
    )
    watchdog_interval = timedelta(minutes=config.bot_action_watchdog_interval_minutes)
    scheduler.on_leader("bot actions", watchdog_interval, watchdog.run_once)
    scheduler.on_every_replica("bot actions watch", config.snapshot_interval, ActionMetrics(gateway).run_once)
    scheduler.on_leader("commands", COMMAND_RELAY, CommandRelay(gateway, bus).run_once)
    scheduler.on_leader("missed publications", config.recover_interval, MissedPublications(gateway).run_once)
    scheduler.on_leader("partitions", PARTITION_CHECK, lambda: gateway.ensure_event_partitions(config.partitions_ahead))


def schedule_maintenance(
    config: RetainConfig, database: Database, objects: Objects | None, scheduler: Scheduler, notes: Notes | None = None
) -> None:
    _schedule_database_jobs(config, database, scheduler, notes)
    if objects is None:
        get_logger().info("retention.no_store", effect="payloads and media are not deleted")
    else:
        _schedule_store_jobs(config, MediaGcGateway(database), objects, scheduler)


def keep_of(config: RetainConfig) -> Keep:
    return Keep(
        origin=config.origin_retention,
        large_video=config.origin_retention_large_video,
        large_bytes=config.large_video_bytes,
    )


def _schedule_store_jobs(config: RetainConfig, gateway: MediaGcGateway, objects: Objects, scheduler: Scheduler) -> None:
    batches = DeletionBatches(config.retain_batch, config.retain_pause)
    keep = keep_of(config)
    payloads = PayloadRetention(objects, config.retain_payloads, batches)
    scheduler.on_leader("payloads", config.retain_interval, payloads.run_once)
    scheduler.on_leader("collect", config.collect_interval, MediaCollector(gateway, objects, keep, batches).run_once)


def _schedule_database_jobs(
    config: RetainConfig, database: Database, scheduler: Scheduler, notes: Notes | None
) -> None:
    retaining, reconciling = RetainGateway(database), ReconcileGateway(database)
    batches = DeletionBatches(config.retain_batch, config.retain_pause)
    events = EventRetention(retaining, config.retain_events, batches, relayed=bool(config.nats_url))
    references = EventReconciliation(reconciling, config.reconcile_chunk, config.reconcile_chunks, config.retain_pause)
    stuck_after = StuckAfter(
        staged=config.stuck_staged_after, deadline=config.stuck_staged_deadline, reply=config.stuck_reply_after
    )
    scheduler.on_leader("retain", config.retain_interval, Retention(retaining, config, notes).run_once)
    scheduler.on_leader("retain events", config.retain_interval, events.run_once)
    scheduler.on_leader("reconcile", config.reconcile_interval, references.run_once)
    scheduler.on_leader("recount", config.recount_interval, Recount(reconciling, notes).run_once)
    scheduler.on_leader("stuck", config.stuck_interval, StuckPosts(reconciling, stuck_after).run_once)
    scheduler.on_every_replica("reconcile watch", config.stuck_interval, ReconcileMetrics(reconciling).run_once)
    scheduler.on_every_replica("stuck watch", config.stuck_interval, StuckMetrics(reconciling, stuck_after).run_once)
