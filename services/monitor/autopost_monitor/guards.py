"""Wire the guards: what takes back, forgets, collects, reconciles, finds what is stuck; each once among replicas."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from autopost_contracts.subjects import Topology
from autopost_runtime.jetstream import Bus
from autopost_runtime.logs import get_logger
from autopost_runtime.objects import Objects, open_objects
from autopost_runtime.postgres import Database

from autopost_monitor.collect import Collector
from autopost_monitor.collect_gateway import CollectGateway, Keep
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.reconcile import EventReconciliation, ReconcileWatch, Recount
from autopost_monitor.reconcile_gateway import ReconcileGateway
from autopost_monitor.recover import Recovery
from autopost_monitor.retain import Batches, Retention
from autopost_monitor.retain_config import RetainConfig
from autopost_monitor.retain_events import EventRetention
from autopost_monitor.retain_gateway import RetainGateway
from autopost_monitor.retain_payloads import PayloadRetention
from autopost_monitor.rounds import Rounds
from autopost_monitor.stuck import Patience, StuckPosts, StuckWatch

PARTITION_CHECK = timedelta(hours=1)


@asynccontextmanager
async def guard_store(config: RetainConfig) -> AsyncIterator[Objects | None]:
    """``None`` where there is no store: then nothing was ever put there."""
    if config.s3_endpoint is None:
        yield None
        return
    async with open_objects(config) as objects:
        yield objects


def lead_queue_guards(config: MonitorConfig, gateway: Gateway, bus: Bus, rounds: Rounds) -> None:
    """Without these the queue stands still: deliveries of the dead, and no place for the next event."""
    recovery = Recovery(gateway, bus, Topology(config.nats_namespace), config.claimed_lease)
    rounds.lead("recover", config.recover_interval, recovery.round)
    rounds.lead("partitions", PARTITION_CHECK, lambda: gateway.ensure_event_partitions(config.partitions_ahead))


def lead_guards(config: RetainConfig, database: Database, objects: Objects | None, rounds: Rounds) -> None:
    _lead_in_database(config, database, rounds)
    if objects is None:
        get_logger().info("guards.no_store", effect="payloads and media are not collected")
    else:
        _lead_in_store(config, CollectGateway(database), objects, rounds)


def _lead_in_store(config: RetainConfig, gateway: CollectGateway, objects: Objects, rounds: Rounds) -> None:
    batches = Batches(config.retain_batch, config.retain_pause)
    keep = Keep(
        origin=config.origin_retention,
        large_video=config.origin_retention_large_video,
        large_bytes=config.large_video_bytes,
    )
    payloads = PayloadRetention(objects, config.retain_payloads, batches)
    rounds.lead("payloads", config.retain_interval, payloads.round)
    rounds.lead("collect", config.collect_interval, Collector(gateway, objects, keep, batches).round)


def _lead_in_database(config: RetainConfig, database: Database, rounds: Rounds) -> None:
    retaining, reconciling = RetainGateway(database), ReconcileGateway(database)
    batches = Batches(config.retain_batch, config.retain_pause)
    events = EventRetention(retaining, config.retain_events, batches, relayed=bool(config.nats_url))
    references = EventReconciliation(reconciling, config.reconcile_chunk, config.reconcile_chunks, config.retain_pause)
    patience = Patience(
        staged=config.stuck_staged_after, deadline=config.stuck_staged_deadline, reply=config.stuck_reply_after
    )
    rounds.lead("retain", config.retain_interval, Retention(retaining, config).round)
    rounds.lead("retain events", config.retain_interval, events.round)
    rounds.lead("reconcile", config.reconcile_interval, references.round)
    rounds.lead("recount", config.recount_interval, Recount(reconciling).round)
    rounds.lead("stuck", config.stuck_interval, StuckPosts(reconciling, patience).round)
    rounds.everywhere("reconcile watch", config.stuck_interval, ReconcileWatch(reconciling).round)
    rounds.everywhere("stuck watch", config.stuck_interval, StuckWatch(reconciling, patience).round)
