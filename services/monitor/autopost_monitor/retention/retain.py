"""Delete old rows in small batches, each in its own transaction, with pauses.

An interrupted run loses nothing: the next one continues. For events see ``events``, for objects in the store
``payloads`` and ``media_gc``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from autopost_runtime.lifecycle.set_aside import INSTALLATION, Notes, SetAside
from autopost_runtime.postgres.pool import is_away
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_monitor.retention.config import RetainConfig
from autopost_monitor.retention.gateway import Place, RetainGateway, Step

forgotten = metrics.counter("autopost_forgotten_total", "Rows, partitions and objects deleted by retention, by kind.")


class DeletionBatches(Struct, frozen=True):
    """Rows per statement, and the pause between statements."""

    size: int
    pause: timedelta

    async def rest(self) -> None:
        await asyncio.sleep(self.pause.total_seconds())


def count_deleted(what: str, count: int) -> None:
    if count:
        forgotten.add(count, {"what": what})
        get_logger().info("retain.deleted", what=what, count=count)


class Retention:
    def __init__(self, gateway: RetainGateway, config: RetainConfig, notes: Notes | None = None) -> None:
        self._gateway = gateway
        self._config = config
        self._notes = notes
        self._aside: dict[str, SetAside] = {}
        self._batches = DeletionBatches(config.retain_batch, config.retain_pause)

    async def run_once(self) -> None:
        """Deliveries before messages: a message is deleted once it has no deliveries."""
        gateway, config = self._gateway, self._config
        walks = [
            ("deliveries", config.retain_deliveries, gateway.retain_deliveries),
            ("messages", config.retain_messages, gateway.retain_messages),
            ("media_blobs", config.origin_retention, gateway.retain_media_blobs),
        ]
        for what, keep, walk in walks:
            await self._isolated(what, partial(self._walked, what, keep, walk))
        for what, keep, retain in self._tables():
            await self._isolated(what, partial(self._repeated, what, keep, retain))

    async def _isolated(self, what: str, forget: Callable[[], Awaitable[None]]) -> None:
        """A table that fails is set aside and does not block the others."""
        aside = self._aside.setdefault(what, SetAside(f"retain {what}", self._notes))
        if aside.left(INSTALLATION):
            return
        try:
            await forget()
            await aside.worked(INSTALLATION)
        except Exception as exc:
            if is_away(exc):
                raise
            await aside.failed(INSTALLATION, exc)

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
            ("bot_chats", config.retain_bot_chats, gateway.retain_bot_chats),
            ("bot_logs", config.retain_bot_logs, gateway.retain_bot_logs),
            ("bot_rulesets", config.retain_bot_logs, gateway.retain_bot_rulesets),
            ("command_outbox", config.retain_commands, gateway.retain_commands),
            ("alerts", config.retain_alerts, gateway.retain_alerts),
        ]

    async def _repeated(self, what: str, keep: timedelta, retain: Callable[[timedelta, int], Awaitable[int]]) -> None:
        """Repeat until a batch is not full; locked rows are left for the next run."""
        while True:
            count = await retain(keep, self._batches.size)
            count_deleted(what, count)
            if count < self._batches.size:
                return
            await self._batches.rest()

    async def _walked(
        self, what: str, keep: timedelta, retain: Callable[[timedelta, Place, int], Awaitable[Step]]
    ) -> None:
        after: Place | None = {}
        while after is not None:
            step = await retain(keep, after, self._batches.size)
            count_deleted(what, step.gone)
            count_deleted("renderings", step.renderings)
            after = step.after
            if after is not None:
                await self._batches.rest()
