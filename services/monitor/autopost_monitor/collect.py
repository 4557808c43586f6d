"""Collect objects that nothing refers to: mark in the database, delete from the store, bury in the database.

The store knows no fence, so the mark is one: while it lasts nobody writes the object anew (``note_media_put``), and
when it is over this module no longer deletes. A crash at any point leaves a mark, which a later round takes over.
"""

import asyncio
from datetime import timedelta
from typing import Protocol

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger

from autopost_monitor.collect_gateway import CollectGateway, Doomed, Found, Keep, Place
from autopost_monitor.retain import Batches

LEASE = timedelta(seconds=120)
"""How long a mark lasts."""

OURS = 0.5
"""For how much of it we delete. The rest is for a call that we gave up and that reaches the store after all."""

AT_ONCE = 200
"""So few that they are deleted well within that."""

collected = metrics.counter("autopost_objects_collected_total", "Objects that nothing referred to, by how that ended.")


class Store(Protocol):
    @property
    def bucket(self) -> str: ...

    async def delete(self, key: str) -> None: ...


class Collector:
    def __init__(
        self, gateway: CollectGateway, store: Store, keep: Keep, batches: Batches, lease: timedelta = LEASE
    ) -> None:
        self._gateway = gateway
        self._store = store
        self._keep = keep
        self._batches = batches
        self._size = min(batches.size, AT_ONCE)
        self._lease = lease

    async def round(self) -> None:
        """Strays first: they need no walk."""
        gateway, bucket = self._gateway, self._store.bucket
        began = self._clock()
        await self._delete(await gateway.doom_strays(bucket, self._lease, self._size), began)
        after: Place | None = {}
        while after is not None:
            began = self._clock()
            found = await gateway.doom_media(bucket, self._keep, self._lease, after, self._size)
            await self._delete(found, began)
            after = found.after
            await self._batches.rest()

    async def _delete(self, found: Found, began: float) -> None:
        """``began`` is before the marks were made, so that our lease is never the longer one."""
        deadline = began + OURS * self._lease.total_seconds()
        for doomed in found.doomed:
            ending = await self._collect(doomed, deadline)
            collected.add(1, {"verdict": ending})
            if ending in ("late", "store_away"):
                get_logger().warning("collect.stopped", reason=ending)
                return

    async def _collect(self, doomed: Doomed, deadline: float) -> str:
        key = doomed.origin_url.removeprefix(f"s3://{self._store.bucket}/")
        if self._clock() >= deadline:  # a call may be on its way before a timeout can stop it
            return "late"
        try:
            async with asyncio.timeout_at(deadline):
                await self._store.delete(key)
        except TimeoutError:
            return "late"
        except Exception as exc:
            get_logger().warning("collect.store_away", error=type(exc).__name__)
            return "store_away"
        return "collected" if await self._gateway.bury_media(doomed) else "passed_on"

    def _clock(self) -> float:
        return asyncio.get_running_loop().time()
