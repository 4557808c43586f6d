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
    """Whoever asks before a read has begun is answered by it: a claim of five hundred reads once."""

    def __init__(self, renderings: Renderings) -> None:
        self._renderings = renderings
        self._known: OrderedDict[RenderingId, Plan] = OrderedDict()
        self._asked: dict[WorkspaceId, dict[RenderingId, asyncio.Future[Plan | None]]] = {}
        self._reads: set[asyncio.Task[None]] = set()

    async def plan(self, workspace: WorkspaceId, rendering: RenderingId) -> Plan | None:
        found = self._known.get(rendering)
        if found is not None:
            return found
        asked = self._asked.get(workspace)
        if asked is None:
            asked = self._asked[workspace] = {}
            read = asyncio.create_task(self._read(workspace))
            self._reads.add(read)
            read.add_done_callback(self._reads.discard)
        if rendering not in asked:
            asked[rendering] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(asked[rendering])

    async def _read(self, workspace: WorkspaceId) -> None:
        asked = self._asked.pop(workspace)
        try:
            found = await self._renderings.read_renderings(workspace, asked)
        except Exception as exc:
            for future in asked.values():
                future.set_exception(exc)
                future.exception()  # whoever asked may be gone; then nobody has to hear it
            return
        for rendering, plan in found.items():
            self._known[rendering] = plan
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        for rendering, future in asked.items():
            future.set_result(found.get(rendering))
