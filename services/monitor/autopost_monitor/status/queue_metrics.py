"""Metrics of the queue: its depth, the age of the oldest due delivery, and platforms that do not
answer.

Per workspace only if configured, since each workspace adds time series.
"""

from collections.abc import Iterable

from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.metrics import Observation

from autopost_monitor.gateway import CircuitCount, Depth, Gateway, WorkspaceBacklog


class QueueMetrics:
    """The busiest ``workspaces`` get their own label, the rest is ``other``; 0 switches this off."""

    def __init__(self, gateway: Gateway, workspaces: int = 0) -> None:
        self._gateway = gateway
        self._workspaces = workspaces
        self._depths: list[Depth] = []
        self._backlogs: list[WorkspaceBacklog] = []
        self._circuits: list[CircuitCount] = []
        metrics.gauge("autopost_queue_depth", "Live deliveries, by status.", self._by_status)
        metrics.gauge("autopost_queue_oldest_due_seconds", "How long the oldest due one has waited.", self._oldest)
        metrics.gauge("autopost_circuits", "Rate groups, by platform and circuit.", self._by_circuit)
        if workspaces:
            metrics.gauge(
                "autopost_workspace_deliveries", "Live deliveries, by workspace and state.", self._by_workspace
            )
            metrics.gauge(
                "autopost_workspace_oldest_due_seconds",
                "How long the oldest due one of a workspace has waited.",
                self._oldest_by_workspace,
            )

    async def run_once(self) -> None:
        self._depths = await self._gateway.queue_depth()
        self._circuits = await self._gateway.circuit_counts()
        if self._workspaces:
            self._backlogs = await self._gateway.queue_by_workspace(self._workspaces)

    def _by_status(self) -> Iterable[Observation]:
        return [Observation(depth.deliveries, {"status": depth.status}) for depth in self._depths]

    def _by_circuit(self) -> Iterable[Observation]:
        return [
            Observation(one.rate_groups, {"platform": one.platform, "circuit": one.circuit}) for one in self._circuits
        ]

    def _oldest(self) -> float:
        return max((depth.oldest_due_seconds for depth in self._depths), default=0.0)

    def _by_workspace(self) -> Iterable[Observation]:
        return [
            Observation(count, {"workspace": one.workspace, "state": state})
            for one in self._backlogs
            for state, count in (("due", one.due), ("later", one.later), ("claimed", one.claimed))
        ]

    def _oldest_by_workspace(self) -> Iterable[Observation]:
        return [Observation(one.oldest_due_seconds, {"workspace": one.workspace}) for one in self._backlogs]
