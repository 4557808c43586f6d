"""Which workspace to look at next: those that were woken or found due, each once, in their order."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.gateway import ConversationGateway

MOST_FOUND = 1000


class ChatSchedule:
    def __init__(self) -> None:
        self._woken: OrderedDict[WorkspaceId, None] = OrderedDict()
        self._full: set[WorkspaceId] = set()
        self._has_some = asyncio.Event()
        self._closed = False

    def wake(self, workspace: WorkspaceId) -> None:
        self._woken.setdefault(workspace)
        self._has_some.set()

    def is_full(self, workspace: WorkspaceId) -> None:
        """This process has as many of its chats as it may have: it is looked at again when one is given back."""
        self._full.add(workspace)

    def given_back(self, workspace: WorkspaceId) -> None:
        if workspace in self._full:
            self._full.discard(workspace)
            self.wake(workspace)

    def on_wakeup(self, subject: str) -> None:
        self.wake(WorkspaceId(UUID(subject.rpartition(".")[2])))

    async def next_batch(self, limit: int) -> list[WorkspaceId]:
        """Those that have waited longest; a lone one at once. Empty when closed."""
        while not self._closed:
            if self._woken:
                return [self._woken.popitem(last=False)[0] for _ in range(min(limit, len(self._woken)))]
            self._has_some.clear()
            await self._has_some.wait()
        return []

    def close(self) -> None:
        self._closed = True
        self._has_some.set()

    @property
    def closed(self) -> bool:
        return self._closed


async def poll(
    schedule: ChatSchedule, gateway: ConversationGateway, interval: timedelta, failed: Callable[[], None]
) -> None:
    """Find what no wakeup named: retries, updates of a time without NATS, chats of workers that died."""
    while not schedule.closed:
        try:
            for workspace in await gateway.due_bot_workspaces(MOST_FOUND):
                schedule.wake(workspace)
        except Exception as exc:
            failed()
            get_logger().warning("bot.poll_failed", error=error_name(exc))
        await asyncio.sleep(interval.total_seconds())
