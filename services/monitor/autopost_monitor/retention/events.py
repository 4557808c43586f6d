"""Drop old event partitions, after writing checkpoints for the deliveries that remain."""

from datetime import timedelta

from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.retention.gateway import RetainGateway
from autopost_monitor.retention.retain import DeletionBatches, count_deleted

TRIES = 20
"""Attempts to drop a partition that is being read; the next run tries again."""


class EventRetention:
    def __init__(self, gateway: RetainGateway, keep: timedelta, batches: DeletionBatches, *, relayed: bool) -> None:
        """``relayed``: drop only partitions that the audit relay has passed."""
        self._gateway = gateway
        self._keep = keep
        self._batches = batches
        self._relayed = relayed

    async def run_once(self) -> None:
        for partition in await self._gateway.expired_event_partitions(self._keep):
            await self._checkpoint(partition)
            verdict = await self._drop(partition)
            count_deleted("event_partitions", int(verdict == "dropped"))
            if verdict != "dropped":
                get_logger().warning("retain.partition_kept", partition=partition, reason=verdict)

    async def _checkpoint(self, partition: str) -> None:
        while await self._gateway.checkpoint_deliveries(partition, self._batches.size) is not None:
            await self._batches.rest()

    async def _drop(self, partition: str) -> str:
        for _ in range(TRIES):
            verdict = await self._gateway.drop_event_partition(partition, self._keep, relayed=self._relayed)
            if verdict != "busy":
                break
            await self._batches.rest()
        return verdict
