"""Watch the inbox: what customers wrote and nobody has answered yet.

A wakeup or the poll makes it look; the database alone knows what is unanswered. The engine that answers takes
its work from here.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.metrics import Observation
from autopost_runtime.postgres import is_retryable

from autopost_bot.gateway import Backlog, Gateway


class Inbox:
    def __init__(self, gateway: Gateway, poll_interval: timedelta) -> None:
        self._gateway = gateway
        self._poll_interval = poll_interval
        self._woken = asyncio.Event()
        self._backlog: list[Backlog] = []
        metrics.gauge("autopost_bot_unanswered", "Updates of customers not answered yet.", self._readings)

    def wake(self, subject: str) -> None:
        self._woken.set()

    async def run(self) -> None:
        while True:
            self._woken.clear()
            await self._look()
            try:
                async with asyncio.timeout(self._poll_interval.total_seconds()):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        try:
            self._backlog = await self._gateway.bot_backlog()
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("inbox.unreadable", error=type(exc).__name__)

    def _readings(self) -> Iterable[Observation]:
        return [Observation(one.unanswered, {"workspace_id": str(one.workspace_id)}) for one in self._backlog]
