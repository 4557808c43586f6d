"""Tell the owners of publications that these were paused or have failed: some at once, each within its own limit."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.alerts.notice_result import NoticeDelivered, NoticeRejected, NoticeResult, TargetUnreachable
from autopost_monitor.owners.gateway import Outcome, OwnerNotice
from autopost_monitor.owners.targets import OwnerTarget

AT_ONCE = 8
BATCH = 2 * AT_ONCE
"""Few: after each batch the workspaces take turns anew."""
GIVEN_UP_AFTER = timedelta(days=3)

_notices = metrics.counter(
    "autopost_owner_notices_total", "Notices to the owners of publications, by target and outcome."
)


class OwnerNotices(Protocol):
    async def next_owner_notices(self, targets: Sequence[str], limit: int) -> list[OwnerNotice]: ...

    async def record_owner_notice(
        self, notice: OwnerNotice, outcome: Outcome, error: str | None, wait: timedelta | None, base: timedelta
    ) -> None: ...

    async def give_up_owner_notices(self, after: timedelta) -> list[tuple[str, str, int]]: ...


class OwnerNotifier:
    """A notice is recorded after its owner answered; after a crash in between it is sent again with the same id.

    No address is logged: it may be a URL with a secret in it.
    """

    def __init__(self, gateway: OwnerNotices, targets: Mapping[str, OwnerTarget], retry: timedelta) -> None:
        self._gateway = gateway
        self._targets = targets
        self._retry = retry

    async def run_once(self) -> None:
        for target, error, count in await self._gateway.give_up_owner_notices(GIVEN_UP_AFTER):
            get_logger().warning("owner_notices.given_up", target=target, error=error, notices=count)
        while notices := await self._gateway.next_owner_notices(sorted(self._targets), BATCH):
            limit = asyncio.Semaphore(AT_ONCE)
            ended = await asyncio.gather(*(self._tell(notice, limit) for notice in notices), return_exceptions=True)
            for exc in ended:  # only now: the others of the batch were told all the same
                if isinstance(exc, BaseException):
                    raise exc

    async def _tell(self, notice: OwnerNotice, limit: asyncio.Semaphore) -> None:
        async with limit:
            await self._settle(notice, await self._send(notice))

    async def _send(self, notice: OwnerNotice) -> NoticeResult:
        """Only the type of an exception is recorded: its text may contain a URL, and a URL may contain secrets."""
        try:
            return await self._targets[notice.target].send(notice)
        except Exception as exc:
            return TargetUnreachable(type(exc).__name__)

    async def _settle(self, notice: OwnerNotice, result: NoticeResult) -> None:
        outcome: Outcome
        match result:
            case NoticeDelivered():
                outcome, error, wait = "delivered", None, None
            case NoticeRejected(code):
                outcome, error, wait = "refused", code, None
            case TargetUnreachable(code, wait):
                outcome, error = "unreachable", code
        _notices.add(1, {"target": notice.target, "outcome": outcome})
        log = get_logger().info if error is None else get_logger().warning
        log(
            "owner.notified",
            target=notice.target,
            notice=notice.id,
            workspace_id=str(notice.workspace_id),
            outcome=outcome,
            error=error,
        )
        await self._gateway.record_owner_notice(notice, outcome, error, wait, self._retry)
