"""Send due notices to one target, in order, until none is due or the target is unreachable."""

from datetime import timedelta
from typing import Protocol

from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_monitor.alerts.gateway import Notice
from autopost_monitor.alerts.notice_result import NoticeDelivered, NoticeRejected, NoticeResult, TargetUnreachable
from autopost_monitor.alerts.targets import AlertTarget

_notices = metrics.counter("autopost_alert_notices_total", "Alert notices, by target and outcome.")


class Notices(Protocol):
    async def next_notice(self, target: str) -> Notice | None: ...

    async def record_notice_result(
        self, notice: Notice, target: str, outcome: str, error: str | None, wait: timedelta | None, base: timedelta
    ) -> None: ...


class Notifier:
    """A notice is recorded after the target answered; after a crash in between it is sent again with the same id."""

    def __init__(self, gateway: Notices, target: AlertTarget, retry: timedelta) -> None:
        self._gateway = gateway
        self._target = target
        self._retry = retry

    async def run_once(self) -> None:
        while notice := await self._gateway.next_notice(self._target.name):
            result = await self._send(notice)
            await self._settle(notice, result)
            if isinstance(result, TargetUnreachable):
                return

    async def _send(self, notice: Notice) -> NoticeResult:
        """An exception keeps the notice for this target and does not affect the others.

        Only its type is recorded: the text of an error may contain a URL, and a URL may contain secrets.
        """
        try:
            return await self._target.send(notice)
        except Exception as exc:
            return TargetUnreachable(type(exc).__name__)

    async def _settle(self, notice: Notice, result: NoticeResult) -> None:
        match result:
            case NoticeDelivered():
                outcome, error, wait = "delivered", None, None
            case NoticeRejected(code):
                outcome, error, wait = "refused", code, None
            case TargetUnreachable(code, wait):
                outcome, error = "unreachable", code
        _notices.add(1, {"target": self._target.name, "outcome": outcome})
        log = get_logger().info if error is None else get_logger().warning
        log("alert.notified", target=self._target.name, notice=notice.id, outcome=outcome, error=error)
        await self._gateway.record_notice_result(notice, self._target.name, outcome, error, wait, self._retry)
