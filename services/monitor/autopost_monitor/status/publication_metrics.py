"""Metrics of publications: those that have not ended, by status, and commands that are not in the stream yet."""

from collections.abc import Iterable

from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.metrics import Observation

from autopost_monitor.gateway import Gateway

STATUSES = ("draft", "approved", "scheduled", "publishing", "paused", "failed")


class PublicationMetrics:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._counts: dict[str, int] = {}
        self._unpublished = 0
        metrics.gauge("autopost_publications", "Publications that have not ended, by status.", self._by_status)
        metrics.gauge(
            "autopost_commands_unpublished", "Commands that are not in the stream yet.", lambda: self._unpublished
        )

    async def run_once(self) -> None:
        self._counts = await self._gateway.count_publications()
        self._unpublished = await self._gateway.count_unpublished_commands()

    def _by_status(self) -> Iterable[Observation]:
        return [Observation(self._counts.get(status, 0), {"status": status}) for status in STATUSES]
