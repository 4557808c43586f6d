"""Measure the inbox: customer updates that are not answered yet.

The backlog is read at the poll interval; only the database knows what is unanswered.
"""

import asyncio
from datetime import timedelta

from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.gateway import Gateway, InboxBacklog

looks_failed = metrics.counter("autopost_bot_looks_failed_total", "Failed reads of the inbox.")


class Inbox:
    def __init__(self, gateway: Gateway, poll_interval: timedelta) -> None:
        self._gateway = gateway
        self._poll_interval = poll_interval
        self._backlog: list[InboxBacklog] = []
        metrics.gauge("autopost_bot_unanswered", "Updates of customers not answered yet.", self._unanswered)

    async def run(self) -> None:
        while True:
            await self._read_backlog()
            await asyncio.sleep(self._poll_interval.total_seconds())

    async def _read_backlog(self) -> None:
        try:
            self._backlog = await self._gateway.bot_backlog()
        except Exception as exc:
            looks_failed.add(1)
            get_logger().warning(
                "inbox.unreadable", exc_info=None if is_retryable(exc) else exc, error=type(exc).__name__
            )

    def _unanswered(self) -> int:
        """Of all workspaces: a series for each would be without bounds."""
        return sum(one.unanswered for one in self._backlog)
