"""Watch the relay: how much the audit stream does not have yet, as metrics."""

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger

from autopost_monitor.relay_gateway import Lag, RelayGateway


class RelayWatch:
    def __init__(self, gateway: RelayGateway) -> None:
        self._gateway = gateway
        self._lag: Lag | None = None
        metrics.gauge("autopost_relay_lag_events", "Events that are not in the audit stream yet.", self._events)
        metrics.gauge("autopost_relay_lag_seconds", "How long the oldest of them has waited.", self._seconds)

    async def round(self) -> None:
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
