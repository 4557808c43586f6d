"""Watch for trouble: judge the conditions, write down whom to tell, and count what is open."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.metrics import Observation

from autopost_monitor.alert_config import AlertConfig
from autopost_monitor.alert_gateway import AlertGateway
from autopost_monitor.conditions import WORDS, thresholds


class Alerts:
    """``round`` is the leader's; ``count`` is everybody's, for the metric."""

    def __init__(self, gateway: AlertGateway, config: AlertConfig, targets: Sequence[str]) -> None:
        self._gateway = gateway
        self._thresholds: dict[str, Any] = thresholds(config)
        self._window = config.alert_window
        self._remind = config.alert_remind
        self._policy = config.snapshot_policy
        self._snapshot_every: timedelta = config.snapshot_every
        self._targets = tuple(targets)
        self._open: dict[str, int] = {}
        metrics.gauge("autopost_alerts_open", "Alerts that are open, by condition.", self._by_condition)

    async def round(self) -> None:
        moved = await self._gateway.judge_alerts(
            self._thresholds, self._window, self._remind, self._targets, with_snapshot=self._policy == "on_alert"
        )
        for alert in moved:
            get_logger().warning(
                f"alert.{alert.kind}",
                alert_id=str(alert.alert_id),
                workspace_id=str(alert.workspace_id),
                condition=alert.condition,
                found=alert.found,
            )
        if self._policy == "schedule":
            await self._gateway.tell_snapshot(self._snapshot_every, self._targets)
        for target, notices in (await self._gateway.abandon_notices(self._targets, self._remind)).items():
            get_logger().warning("alert.abandoned", target=target, notices=notices, error="target_removed")

    async def count(self) -> None:
        self._open = await self._gateway.count_alerts()

    def _by_condition(self) -> Iterable[Observation]:
        return [Observation(self._open.get(name, 0), {"condition": name}) for name in WORDS]
