"""End actions of bots that nobody ended in time, and wake the streams of their chats; count actions."""

from collections.abc import Iterable
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.set_aside import SetAside
from autopost_runtime.nats.bus import Bus
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from autopost_runtime.telemetry.metrics import Observation

from autopost_monitor.gateway import ExpiredInChat, Gateway
from autopost_monitor.leader.each_workspace import for_each_workspace

BATCH = 500

expired_total = metrics.counter("autopost_bot_actions_expired_total", "Actions of bots that ran into their timeout.")


class ActionWatchdog:
    def __init__(self, gateway: Gateway, bus: Bus, topology: Topology, max_age: timedelta, batch: int = BATCH) -> None:
        self._gateway = gateway
        self._bus = bus
        self._topology = topology
        self._max_age = max_age
        self._batch = batch
        self._aside = SetAside("bot actions", gateway)

    async def run_once(self) -> None:
        await for_each_workspace(await self._gateway.active_workspaces(), self._aside, self._expire)

    async def _expire(self, workspace: WorkspaceId) -> None:
        """Repeat until nothing is left: one call ends a limited number, and a locked chat waits for the next run."""
        while chats := await self._gateway.expire_bot_actions(workspace, self._max_age, self._batch):
            self._report(workspace, chats)

    def _report(self, workspace: WorkspaceId, chats: list[ExpiredInChat]) -> None:
        expired = sum(chat.expired for chat in chats)
        expired_total.add(expired)
        get_logger().warning("bot_actions.expired", workspace_id=str(workspace), actions=expired, chats=len(chats))
        for chat in chats:
            self._bus.wake(self._topology.chat(workspace, chat.chat))


class ActionMetrics:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._counts: dict[str, int] = {}
        metrics.gauge("autopost_bot_actions", "Actions of bots, by status.", self._by_status)

    async def run_once(self) -> None:
        self._counts = await self._gateway.count_bot_actions()

    def _by_status(self) -> Iterable[Observation]:
        return [Observation(count, {"status": status}) for status, count in self._counts.items()]
