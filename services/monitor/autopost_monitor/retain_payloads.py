"""Raw payloads leave the store by their age: what the database says of them has gone, or points at nothing by then."""

from datetime import UTC, datetime, timedelta

from autopost_runtime.logs import get_logger
from autopost_runtime.objects import Listed, Objects

from autopost_monitor.retain import Batches, told

FOLDER = "payloads/"
"""Below the folder of each workspace; media lies beside it and is none of this module's business."""


class PayloadRetention:
    def __init__(self, objects: Objects, keep: timedelta, batches: Batches) -> None:
        self._objects = objects
        self._keep = keep
        self._batches = batches

    async def round(self) -> None:
        """A store that is away ends the round, not the service."""
        try:
            async for workspace in self._objects.folders():
                told("payloads", await self._sweep(f"{workspace}{FOLDER}"))
        except Exception as exc:
            get_logger().warning("retain.store_away", error=type(exc).__name__)

    async def _sweep(self, prefix: str) -> int:
        gone = 0
        async for listed in self._objects.listed(prefix):
            if not self._is_old(listed):
                continue
            await self._objects.delete(listed.key)
            gone += 1
            if gone % self._batches.size == 0:
                await self._batches.rest()
        return gone

    def _is_old(self, listed: Listed) -> bool:
        return listed.modified < datetime.now(UTC) - self._keep
