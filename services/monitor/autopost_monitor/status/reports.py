"""Reports for the status page: shared by concurrent viewers of the same workspace, with few reads at once."""

import asyncio
import time
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

FRESH = timedelta(seconds=1)
AT_ONCE = 2
"""Database connections for reports: viewers must not block the jobs of the monitor."""
MOST_KEPT = 1000

Report = dict[str, Any]


class ReportSource(Protocol):
    async def status_report(self, workspace: UUID | None) -> Report: ...


class Reports:
    """Cached per workspace, so that a viewer never sees a report read with other rights."""

    def __init__(self, source: ReportSource, fresh: timedelta = FRESH) -> None:
        self._source = source
        self._fresh = fresh.total_seconds()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._reads: dict[UUID | None, tuple[float, asyncio.Task[Report]]] = {}

    async def of(self, workspace: UUID | None) -> Report:
        begun, read = self._reads.get(workspace, (0.0, None))
        if read is None or (read.done() and time.monotonic() - begun > self._fresh) or _failed(read):
            self._forget_old()
            read = asyncio.create_task(self._read(workspace))
            self._reads[workspace] = (time.monotonic(), read)
        return await asyncio.shield(read)

    async def _read(self, workspace: UUID | None) -> Report:
        async with self._slots:
            return await self._source.status_report(workspace)

    def _forget_old(self) -> None:
        if len(self._reads) > MOST_KEPT:
            self._reads = {key: kept for key, kept in self._reads.items() if not kept[1].done()}


def _failed(read: asyncio.Task[Report]) -> bool:
    return read.done() and (read.cancelled() or read.exception() is not None)
