"""Old events leave by whole partitions, after the deliveries that stay were given a checkpoint to begin from."""

from datetime import timedelta

from autopost_runtime.logs import get_logger

from autopost_monitor.retain import Batches, told
from autopost_monitor.retain_gateway import RetainGateway

TRIES = 20
"""At a partition that others are reading; the next round tries again."""


class EventRetention:
    def __init__(self, gateway: RetainGateway, keep: timedelta, batches: Batches, *, relayed: bool) -> None:
        """``relayed``: whether the audit relay must have passed what goes."""
        self._gateway = gateway
        self._keep = keep
        self._batches = batches
        self._relayed = relayed

    async def round(self) -> None:
        for partition in await self._gateway.expired_event_partitions(self._keep):
            await self._checkpoint(partition)
            verdict = await self._drop(partition)
            told("event_partitions", int(verdict == "dropped"))
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
