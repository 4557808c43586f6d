"""Posts whose media nobody gets done with, and replies that are not sent: taken back where that helps, and measured."""

from collections.abc import Iterable
from datetime import timedelta

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger
from autopost_runtime.metrics import Observation
from msgspec import Struct

from autopost_monitor.reconcile_gateway import ReconcileGateway

WORKERS = 20
"""A post that has cost so many of them is given up."""

AT_ONCE = 100


class Patience(Struct, frozen=True, kw_only=True):
    staged: timedelta
    deadline: timedelta
    reply: timedelta


class StuckPosts:
    def __init__(self, gateway: ReconcileGateway, patience: Patience) -> None:
        self._gateway = gateway
        self._patience = patience

    async def round(self) -> None:
        recovered = await self._gateway.recover_staged_posts(self._patience.staged, WORKERS, AT_ONCE)
        if recovered:
            get_logger().warning("staged_posts.recovered", count=recovered)


class StuckWatch:
    def __init__(self, gateway: ReconcileGateway, patience: Patience) -> None:
        self._gateway = gateway
        self._patience = patience
        self._posts: dict[str, int] = {}
        self._replies = 0
        metrics.gauge("autopost_stuck_staged_posts", "Posts whose media nobody gets done with, by why.", self._by_why)
        metrics.gauge("autopost_stuck_bot_replies", "Replies decided long ago and not sent.", lambda: self._replies)

    async def round(self) -> None:
        self._posts = await self._gateway.stuck_staged_posts(self._patience.staged, self._patience.deadline)
        self._replies = await self._gateway.stuck_bot_replies(self._patience.reply)

    def _by_why(self) -> Iterable[Observation]:
        return [Observation(self._posts.get(why, 0), {"why": why}) for why in ("untaken", "lost", "late")]
