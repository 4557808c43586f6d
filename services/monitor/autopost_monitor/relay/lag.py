"""Metrics of the relay: how far the audit stream is behind."""

from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.relay.gateway import Lag, RelayGateway


class RelayMetrics:
    def __init__(self, gateway: RelayGateway) -> None:
        self._gateway = gateway
        self._lag: Lag | None = None
        metrics.gauge("autopost_relay_lag_events", "Events that are not in the audit stream yet.", self._events)
        metrics.gauge("autopost_relay_lag_seconds", "How long the oldest of them has waited.", self._seconds)

    async def run_once(self) -> None:
        self._lag = lag = await self._gateway.relay_lag()
        if lag.blocking_seconds is not None:
            get_logger().warning(
                "relay.blocked",
                pid=lag.blocking_pid,
                application=lag.blocking_application,
                state=lag.blocking_state,
                seconds=round(lag.blocking_seconds, 1),
                command=lag.blocking_command,
            )

    def _events(self) -> float:
        return float(self._lag.events) if self._lag else 0.0

    def _seconds(self) -> float:
        return self._lag.seconds if self._lag else 0.0
