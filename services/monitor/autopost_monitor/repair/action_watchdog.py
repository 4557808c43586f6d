"""End actions of bots that nobody ended in time, and wake the streams of their chats."""

from datetime import timedelta

from autopost_contracts.subjects import Topology
from autopost_runtime.nats.bus import Bus
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.gateway import Gateway

BATCH = 500

expired_total = metrics.counter("autopost_bot_actions_expired_total", "Actions of bots that ran into their timeout.")


class ActionWatchdog:
    def __init__(self, gateway: Gateway, bus: Bus, topology: Topology, max_age: timedelta, batch: int = BATCH) -> None:
        self._gateway = gateway
        self._bus = bus
        self._topology = topology
        self._max_age = max_age
        self._batch = batch

    async def run_once(self) -> None:
        """Repeat until nothing is left: one call ends a limited number, and a locked chat waits for the next run."""
        while chats := await self._gateway.expire_bot_actions(self._max_age, self._batch):
            expired = sum(chat.expired for chat in chats)
            expired_total.add(expired)
            get_logger().warning("bot_actions.expired", actions=expired, chats=len(chats))
            for chat in chats:
                self._bus.wake(self._topology.chat(chat.workspace_id, chat.chat))
