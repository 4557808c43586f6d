"""Delete stored objects without references: mark in the database, delete in the store, remove the row.

The store has no fencing, so the mark provides it: while the mark is valid no service writes the object again
(``note_media_put``), and after it expires this module no longer deletes. After a crash a later run continues.
"""

import asyncio
from datetime import timedelta
from typing import Protocol

from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.retention.media_gc_gateway import Deletion, Keep, MarkedMedia, MediaGcGateway, Place
from autopost_monitor.retention.retain import DeletionBatches

LEASE = timedelta(seconds=120)
"""How long a mark is valid."""

DELETE_WITHIN = 0.5
"""Fraction of the mark's lifetime in which objects are deleted. The rest is for a cancelled call that still arrives."""

AT_ONCE = 200
"""Objects per batch, few enough to be deleted within that time."""

collected = metrics.counter(
    "autopost_objects_collected_total", "Stored objects without references, by result of the deletion."
)


class ObjectStore(Protocol):
    @property
    def bucket(self) -> str: ...

    async def delete(self, key: str) -> None: ...


class MediaCollector:
    def __init__(
        self,
        gateway: MediaGcGateway,
        store: ObjectStore,
        keep: Keep,
        batches: DeletionBatches,
        lease: timedelta = LEASE,
    ) -> None:
        self._gateway = gateway
        self._store = store
        self._keep = keep
        self._batches = batches
        self._size = min(batches.size, AT_ONCE)
        self._lease = lease

    async def run_once(self) -> None:
        """Orphan objects first: they need no walk."""
        gateway, bucket = self._gateway, self._store.bucket
        began = self._clock()
        await self._delete(await gateway.mark_orphan_objects(bucket, self._lease, self._size), began)
        after: Place | None = {}
        while after is not None:
            began = self._clock()
            found = await gateway.mark_media_for_deletion(bucket, self._keep, self._lease, after, self._size)
            await self._delete(found, began)
            after = found.after
            await self._batches.rest()

    async def _delete(self, found: MarkedMedia, began: float) -> None:
        """``began`` is before the marks were made, so that their remaining time is never overestimated."""
        deadline = began + DELETE_WITHIN * self._lease.total_seconds()
        for deletion in found.deletions:
            result = await self._collect(deletion, deadline)
            collected.add(1, {"verdict": result})
            if result in ("late", "store_away"):
                get_logger().warning("media_gc.stopped", reason=result)
                return

    async def _collect(self, deletion: Deletion, deadline: float) -> str:
        key = deletion.origin_url.removeprefix(f"s3://{self._store.bucket}/")
        if self._clock() >= deadline:  # a timeout cannot stop a call that was already sent
            return "late"
        try:
            async with asyncio.timeout_at(deadline):
                await self._store.delete(key)
        except TimeoutError:
            return "late"
        except Exception as exc:
            get_logger().warning("media_gc.store_away", error=type(exc).__name__)
            return "store_away"
        return "collected" if await self._gateway.finish_media_deletion(deletion) else "passed_on"

    def _clock(self) -> float:
        return asyncio.get_running_loop().time()
