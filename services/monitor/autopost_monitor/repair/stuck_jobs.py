"""Stuck staged posts and bot replies: recover the posts, measure both."""

from collections.abc import Iterable
from datetime import timedelta

from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from autopost_runtime.telemetry.metrics import Observation
from msgspec import Struct

from autopost_monitor.repair.gateway import ReconcileGateway

WORKERS = 20
"""A post fails permanently after this many workers failed on it."""

AT_ONCE = 100


class StuckAfter(Struct, frozen=True, kw_only=True):
    staged: timedelta
    deadline: timedelta
    reply: timedelta


class StuckPosts:
    def __init__(self, gateway: ReconcileGateway, stuck_after: StuckAfter) -> None:
        self._gateway = gateway
        self._stuck_after = stuck_after

    async def run_once(self) -> None:
        recovered = await self._gateway.recover_staged_posts(self._stuck_after.staged, WORKERS, AT_ONCE)
        if recovered:
            get_logger().warning("staged_posts.recovered", count=recovered)


class StuckMetrics:
    def __init__(self, gateway: ReconcileGateway, stuck_after: StuckAfter) -> None:
        self._gateway = gateway
        self._stuck_after = stuck_after
        self._posts: dict[str, int] = {}
        self._replies = 0
        metrics.gauge("autopost_stuck_staged_posts", "Staged posts that are stuck, by reason.", self._by_why)
        metrics.gauge("autopost_stuck_bot_replies", "Bot replies that wait for too long.", lambda: self._replies)

    async def run_once(self) -> None:
        self._posts = await self._gateway.stuck_staged_posts(self._stuck_after.staged, self._stuck_after.deadline)
        self._replies = await self._gateway.stuck_bot_replies(self._stuck_after.reply)

    def _by_why(self) -> Iterable[Observation]:
        return [Observation(self._posts.get(why, 0), {"why": why}) for why in ("untaken", "lost", "late")]
