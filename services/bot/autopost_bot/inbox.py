"""Measure what the bots have to do: updates without an answer, replies to send, chats by what they wait for.

The counts are read at the poll interval; only the database knows them.
"""

import asyncio
from datetime import timedelta

from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.gateway import BotCounts, Gateway

looks_failed = metrics.counter("autopost_bot_looks_failed_total", "Failed reads of the inbox.")


class Inbox:
    """The gauges are those of all workspaces: a series for each would be without bounds."""

    def __init__(self, gateway: Gateway, poll_interval: timedelta) -> None:
        self._gateway = gateway
        self._poll_interval = poll_interval
        self._counts: list[BotCounts] = []
        metrics.gauge("autopost_bot_unanswered", "Updates of customers not answered yet.", self._unanswered)
        metrics.gauge("autopost_bot_replies_unsent", "Replies that were decided and have not ended.", self._unsent)
        metrics.gauge("autopost_bot_chats", "Chats by what they wait for.", self._chats)

    async def run(self) -> None:
        while True:
            await self._read()
            await asyncio.sleep(self._poll_interval.total_seconds())

    async def _read(self) -> None:
        try:
            self._counts = await self._gateway.bot_counts()
        except Exception as exc:
            looks_failed.add(1)
            get_logger().warning(
                "inbox.unreadable", exc_info=None if is_retryable(exc) else exc, error=type(exc).__name__
            )

    def _unanswered(self) -> int:
        return sum(one.unanswered for one in self._counts)

    def _unsent(self) -> int:
        return sum(one.unsent for one in self._counts)

    def _chats(self) -> list[metrics.Observation]:
        states = {"waiting": "waiting", "held": "handed_over", "stopped": "stopped"}
        return [
            metrics.Observation(sum(getattr(one, field) for one in self._counts), {"state": state})
            for state, field in states.items()
        ]
