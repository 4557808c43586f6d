"""Check what no constraint checks: that events refer to existing rows and that counters are right."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.set_aside import Notes, SetAside
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from autopost_runtime.telemetry.metrics import Observation

from autopost_monitor.leader.each_workspace import for_each_workspace
from autopost_monitor.repair.gateway import ReconcileGateway

corrected = metrics.counter("autopost_counters_corrected_total", "Counters and due times that were wrong, by kind.")


class EventReconciliation:
    """Checks a part of the log per run, with pauses; the database stores the position."""

    def __init__(self, gateway: ReconcileGateway, chunk: int, chunks: int, pause: timedelta) -> None:
        self._gateway = gateway
        self._chunk = chunk
        self._chunks = chunks
        self._pause = pause

    async def run_once(self) -> None:
        for _ in range(self._chunks):
            looked = await self._gateway.reconcile_events(self._chunk)
            if looked.missing:
                get_logger().warning("reconcile.missing_references", count=looked.missing)
            if looked.over:
                return
            await asyncio.sleep(self._pause.total_seconds())


class ReconcileMetrics:
    """Metrics: orphan events found by any replica, and how far event partitions reach."""

    def __init__(self, gateway: ReconcileGateway) -> None:
        self._gateway = gateway
        self._orphans: dict[str, int] = {}
        self._ahead = timedelta(0)
        metrics.gauge("autopost_orphan_events", "Events with a missing reference, by kind.", self._by_kind)
        metrics.gauge(
            "autopost_event_partitions_ahead_seconds", "How far in the future event partitions exist.", self._seconds
        )

    async def run_once(self) -> None:
        self._orphans = await self._gateway.orphan_events()
        self._ahead = await self._gateway.partitions_ahead()

    def _by_kind(self) -> Iterable[Observation]:
        return [Observation(events, {"what": what}) for what, events in self._orphans.items()]

    def _seconds(self) -> float:
        return self._ahead.total_seconds()


class Recount:
    """Corrects counters and due times that drifted although triggers maintain them."""

    def __init__(self, gateway: ReconcileGateway, notes: Notes | None = None) -> None:
        self._gateway = gateway
        self._aside = SetAside("recount", notes)

    async def run_once(self) -> None:
        await for_each_workspace(await self._gateway.active_workspaces(), self._aside, self._recount)

    async def _recount(self, workspace: WorkspaceId) -> None:
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
