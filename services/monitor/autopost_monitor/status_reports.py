"""Reports for the status page: read once for all who look at the same at the same time, and never many at once."""

import asyncio
import time
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

FRESH = timedelta(seconds=1)
AT_ONCE = 2
"""Of the pool's connections: people who look must not stand in the way of the monitor's work."""
MOST_KEPT = 1000

Report = dict[str, Any]


class Source(Protocol):
    async def status_report(self, workspace: UUID | None) -> Report: ...


class Reports:
    """Kept apart by what they are of: nothing read for one viewer is shown to another with other rights."""

    def __init__(self, source: Source, fresh: timedelta = FRESH) -> None:
        self._source = source
        self._fresh = fresh.total_seconds()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._reads: dict[UUID | None, tuple[float, asyncio.Task[Report]]] = {}

    async def of(self, workspace: UUID | None) -> Report:
        begun, read = self._reads.get(workspace, (0.0, None))
        if read is None or (read.done() and time.monotonic() - begun > self._fresh) or _failed(read):
            self._forget_old()
            read = asyncio.create_task(self._read(workspace))
            self._reads[workspace] = (time.monotonic(), read)
        return await asyncio.shield(read)

    async def _read(self, workspace: UUID | None) -> Report:
        async with self._room:
            return await self._source.status_report(workspace)

    def _forget_old(self) -> None:
        if len(self._reads) > MOST_KEPT:
            self._reads = {key: kept for key, kept in self._reads.items() if not kept[1].done()}


def _failed(read: asyncio.Task[Report]) -> bool:
    return read.done() and (read.cancelled() or read.exception() is not None)
