"""Forget what is old: rows in small batches, each its own transaction, with a pause between two.

A round that is cut short has lost nothing: the next one finds what is left. Events leave by whole partitions, see
``retain_events``; objects of the store see ``retain_payloads`` and ``collect``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from msgspec import Struct

from autopost_monitor.retain_config import RetainConfig
from autopost_monitor.retain_gateway import Place, RetainGateway, Step

forgotten = metrics.counter("autopost_forgotten_total", "Rows, partitions and objects that were old, by kind.")


class Batches(Struct, frozen=True):
    """How much one statement takes, and how long the next one waits for it."""

    size: int
    pause: timedelta

    async def rest(self) -> None:
        await asyncio.sleep(self.pause.total_seconds())


def told(what: str, count: int) -> None:
    if count:
        forgotten.add(count, {"what": what})
        get_logger().info("retain.forgotten", what=what, count=count)


class Retention:
    def __init__(self, gateway: RetainGateway, config: RetainConfig) -> None:
        self._gateway = gateway
        self._config = config
        self._batches = Batches(config.retain_batch, config.retain_pause)

    async def round(self) -> None:
        """Deliveries before messages: a message goes when it has none left."""
        gateway, config = self._gateway, self._config
        await self._walked("deliveries", config.retain_deliveries, gateway.retain_deliveries)
        await self._walked("messages", config.retain_messages, gateway.retain_messages)
        await self._walked("media_blobs", config.origin_retention, gateway.retain_media_blobs)
        for what, keep, retain in self._tables():
            await self._repeated(what, keep, retain)

    def _tables(self) -> list[tuple[str, timedelta, Callable[[timedelta, int], Awaitable[int]]]]:
        gateway, config = self._gateway, self._config
        return [
            ("ingress_receipts", timedelta(0), gateway.retain_receipts),
            ("ingest_runs", config.retain_ingest_runs, gateway.retain_ingest_runs),
            ("staged_posts", config.retain_staged_posts, gateway.retain_staged_posts),
            ("pull_receipts", config.retain_pull_receipts, gateway.retain_pull_receipts),
            ("media_fetches", config.retain_media_fetches, gateway.retain_media_fetches),
            ("bot_outbox", config.retain_bot, gateway.retain_bot_outbox),
            ("bot_inbox", config.retain_bot, gateway.retain_bot_inbox),
            ("bot_state", config.retain_bot, gateway.retain_bot_state),
            ("bot_actions", config.retain_bot, gateway.retain_bot_actions),
            ("bot_logs", config.retain_bot_logs, gateway.retain_bot_logs),
            ("command_outbox", config.retain_commands, gateway.retain_commands),
            ("alerts", config.retain_alerts, gateway.retain_alerts),
        ]

    async def _repeated(self, what: str, keep: timedelta, retain: Callable[[timedelta, int], Awaitable[int]]) -> None:
        """Until a batch is not full; whoever it left locked is there in the next round."""
        while True:
            count = await retain(keep, self._batches.size)
            told(what, count)
            if count < self._batches.size:
                return
            await self._batches.rest()

    async def _walked(
        self, what: str, keep: timedelta, retain: Callable[[timedelta, Place, int], Awaitable[Step]]
    ) -> None:
        after: Place | None = {}
        while after is not None:
            step = await retain(keep, after, self._batches.size)
            told(what, step.gone)
            told("renderings", step.renderings)
            after = step.after
            if after is not None:
                await self._batches.rest()
