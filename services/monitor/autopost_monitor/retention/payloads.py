"""Delete raw payloads by age, directly in the store: events may keep a reference to a deleted payload."""

from datetime import UTC, datetime, timedelta

from autopost_runtime.storage.objects import Listed, Objects
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.retention.retain import DeletionBatches, count_deleted

FOLDER = "payloads/"
"""Below the folder of each workspace. Media is in another folder."""


class PayloadRetention:
    def __init__(self, objects: Objects, keep: timedelta, batches: DeletionBatches) -> None:
        self._objects = objects
        self._keep = keep
        self._batches = batches

    async def run_once(self) -> None:
        """An unavailable store ends this run, not the service."""
        try:
            async for workspace in self._objects.folders():
                count_deleted("payloads", await self._sweep(f"{workspace}{FOLDER}"))
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
