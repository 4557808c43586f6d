"""Watch the queue: how deep it is and how long the oldest has waited, as metrics."""

from collections.abc import Iterable

from autopost_runtime import metrics
from autopost_runtime.metrics import Observation

from autopost_monitor.gateway import Depth, Gateway


class QueueWatch:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._depths: list[Depth] = []
        metrics.gauge("autopost_queue_depth", "Live deliveries, by status.", self._by_status)
        metrics.gauge("autopost_queue_oldest_due_seconds", "How long the oldest due one has waited.", self._oldest)

    async def round(self) -> None:
        self._depths = await self._gateway.queue_depth()

    def _by_status(self) -> Iterable[Observation]:
        return [Observation(depth.deliveries, {"status": depth.status}) for depth in self._depths]

    def _oldest(self) -> float:
        return max((depth.oldest_due_seconds for depth in self._depths), default=0.0)
