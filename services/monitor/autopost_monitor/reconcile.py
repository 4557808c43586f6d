"""Prove what nothing else proves: that events refer to rows that are there, and that counters count what is there."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.metrics import Observation

from autopost_monitor.reconcile_gateway import ReconcileGateway

corrected = metrics.counter("autopost_counters_corrected_total", "Counters and due times that were wrong, by kind.")


class EventReconciliation:
    """Some of the log in each round, at an easy pace; where it came to the database remembers."""

    def __init__(self, gateway: ReconcileGateway, chunk: int, chunks: int, pause: timedelta) -> None:
        self._gateway = gateway
        self._chunk = chunk
        self._chunks = chunks
        self._pause = pause

    async def round(self) -> None:
        for _ in range(self._chunks):
            looked = await self._gateway.reconcile_events(self._chunk)
            if looked.missing:
                get_logger().warning("reconcile.missing_references", count=looked.missing)
            if looked.over:
                return
            await asyncio.sleep(self._pause.total_seconds())


class ReconcileWatch:
    """What was found, by any replica, and how far events have a place to go: as metrics."""

    def __init__(self, gateway: ReconcileGateway) -> None:
        self._gateway = gateway
        self._orphans: dict[str, int] = {}
        self._ahead = timedelta(0)
        metrics.gauge("autopost_orphan_events", "Events that refer to what is not there, by kind.", self._by_kind)
        metrics.gauge("autopost_event_partitions_ahead_seconds", "For how long events have a place.", self._seconds)

    async def round(self) -> None:
        self._orphans = await self._gateway.orphan_events()
        self._ahead = await self._gateway.partitions_ahead()

    def _by_kind(self) -> Iterable[Observation]:
        return [Observation(events, {"what": what}) for what, events in self._orphans.items()]

    def _seconds(self) -> float:
        return self._ahead.total_seconds()


class Recount:
    """Drift of counters and due times: what the triggers keep right, something else may have broken."""

    def __init__(self, gateway: ReconcileGateway) -> None:
        self._gateway = gateway

    async def round(self) -> None:
        for workspace in await self._gateway.active_workspaces():
            for one in await self._gateway.recount(workspace):
                corrected.add(1, {"what": one.what})
                get_logger().error(
                    "recount.corrected",
                    workspace_id=str(workspace),
                    channel_id=one.channel_id,
                    what=one.what,
                    was=one.was,
                    is_now=one.is_now,
                )
