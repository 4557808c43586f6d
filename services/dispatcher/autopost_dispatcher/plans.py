"""The plans to send, remembered: a rendering never changes, and a thousand channels share one."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

from autopost_contracts.ids import RenderingId, WorkspaceId
from autopost_contracts.plan import Plan

REMEMBERED = 2_000


class Renderings(Protocol):
    async def read_renderings(self, workspace: WorkspaceId, ids: Iterable[RenderingId]) -> dict[RenderingId, Plan]: ...


class PlanCache:
    def __init__(self, renderings: Renderings) -> None:
        self._renderings = renderings
        self._known: OrderedDict[tuple[WorkspaceId, RenderingId], asyncio.Task[Plan | None]] = OrderedDict()

    async def plan(self, workspace: WorkspaceId, rendering: RenderingId) -> Plan | None:
        """Whoever asks while it is being read waits for the same read."""
        key = (workspace, rendering)
        task = self._known.get(key)
        if task is None:
            task = self._known[key] = asyncio.create_task(self._read(workspace, rendering))
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        try:
            return await asyncio.shield(task)
        except BaseException:
            self._known.pop(key, None)
            raise

    async def _read(self, workspace: WorkspaceId, rendering: RenderingId) -> Plan | None:
        return (await self._renderings.read_renderings(workspace, [rendering])).get(rendering)
