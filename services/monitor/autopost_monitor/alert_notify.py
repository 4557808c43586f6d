"""Tell one target what there is to tell, in order, until nothing is due or the target is away."""

from datetime import timedelta
from typing import Protocol

from autopost_runtime import metrics
from autopost_runtime.logs import get_logger

from autopost_monitor.alert_ending import Delivered, Ending, Refused, Unreachable
from autopost_monitor.alert_gateway import Notice
from autopost_monitor.alert_targets import AlertTarget

_notices = metrics.counter("autopost_alert_notices_total", "Notices of alerts, by target and how it ended.")


class Notices(Protocol):
    async def next_notice(self, target: str) -> Notice | None: ...

    async def settle_notice(
        self, notice: Notice, target: str, outcome: str, error: str | None, wait: timedelta | None, base: timedelta
    ) -> None: ...


class Notifier:
    """A notice is settled after the target answered: killed in between, it is told again under the same id."""

    def __init__(self, gateway: Notices, target: AlertTarget, retry: timedelta) -> None:
        self._gateway = gateway
        self._target = target
        self._retry = retry

    async def round(self) -> None:
        while notice := await self._gateway.next_notice(self._target.name):
            ending = await self._tell(notice)
            await self._settle(notice, ending)
            if isinstance(ending, Unreachable):
                return

    async def _tell(self, notice: Notice) -> Ending:
        """Whatever a target trips over is its own trouble: the notice is kept, and nobody else goes without.

        By its type alone: the words of an error may hold an address, and addresses hold secrets.
        """
        try:
            return await self._target.tell(notice)
        except Exception as exc:
            return Unreachable(type(exc).__name__)

    async def _settle(self, notice: Notice, ending: Ending) -> None:
        match ending:
            case Delivered():
                outcome, error, wait = "delivered", None, None
            case Refused(code):
                outcome, error, wait = "refused", code, None
            case Unreachable(code, wait):
                outcome, error = "unreachable", code
        _notices.add(1, {"target": self._target.name, "outcome": outcome})
        log = get_logger().info if error is None else get_logger().warning
        log("alert.told", target=self._target.name, notice=notice.id, outcome=outcome, error=error)
        await self._gateway.settle_notice(notice, self._target.name, outcome, error, wait, self._retry)
