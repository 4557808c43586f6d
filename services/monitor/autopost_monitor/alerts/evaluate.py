"""Evaluate the alert conditions, queue notices for the targets, and count open alerts."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from autopost_runtime.lifecycle.set_aside import INSTALLATION, Notes, SetAside
from autopost_runtime.postgres.pool import is_away
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from autopost_runtime.telemetry.metrics import Observation

from autopost_monitor.alerts.condition_texts import CONDITION_TEXTS, thresholds
from autopost_monitor.alerts.config import AlertConfig
from autopost_monitor.alerts.gateway import AlertChange, AlertGateway


class Alerts:
    """``run_once`` runs on the leader; ``count`` on every replica, for the metric."""

    def __init__(
        self, gateway: AlertGateway, config: AlertConfig, targets: Sequence[str], notes: Notes | None = None
    ) -> None:
        self._gateway = gateway
        self._thresholds: dict[str, Any] = thresholds(config)
        self._window = config.alert_window
        self._remind = config.alert_remind
        self._policy = config.snapshot_policy
        self._snapshot_every: timedelta = config.snapshot_every
        self._targets = tuple(targets)
        self._open: dict[str, int] = {}
        self._aside = SetAside("alert conditions", notes)
        metrics.gauge("autopost_alerts_open", "Alerts that are open, by condition.", self._by_condition)

    async def run_once(self) -> None:
        for alert in await self._evaluated():
            get_logger().warning(
                f"alert.{alert.kind}",
                alert_id=str(alert.alert_id),
                workspace_id=str(alert.workspace_id),
                condition=alert.condition,
                found=alert.found,
            )
        if self._policy == "schedule":
            await self._gateway.send_snapshot(self._snapshot_every, self._targets)
        for target, notices in (await self._gateway.abandon_notices(self._targets, self._remind)).items():
            get_logger().warning("alert.abandoned", target=target, notices=notices, error="target_removed")

    async def _evaluated(self) -> list[AlertChange]:
        """If a condition fails to evaluate, the others are evaluated without it."""
        try:
            changes = await self._evaluate(self._thresholds)
            await self._aside.worked(INSTALLATION)
            return changes
        except Exception as exc:
            if is_away(exc):
                raise
            working, broken = await self._gateway.working_conditions(self._thresholds)
            get_logger().error("alerts.conditions_failed", conditions=broken)
            await self._aside.failed(INSTALLATION, exc)
            return await self._evaluate(working)

    async def _evaluate(self, thresholds: dict[str, Any]) -> list[AlertChange]:
        return await self._gateway.evaluate_alerts(
            thresholds, self._window, self._remind, self._targets, with_snapshot=self._policy == "on_alert"
        )

    async def count(self) -> None:
        self._open = await self._gateway.count_alerts()

    def _by_condition(self) -> Iterable[Observation]:
        return [Observation(self._open.get(name, 0), {"condition": name}) for name in CONDITION_TEXTS]
