"""The alert targets: one small class per kind.

Each target has its own client and time limit and is called outside of transactions, so an unreachable or broken target
does not affect the others.
"""

from typing import Protocol

from autopost_runtime.http.client import HttpClient

from autopost_monitor.alerts.config import AlertConfig
from autopost_monitor.alerts.gateway import Notice
from autopost_monitor.alerts.notice_result import NoticeResult
from autopost_monitor.alerts.smtp import SmtpTarget
from autopost_monitor.alerts.telegram import TelegramTarget
from autopost_monitor.alerts.webhook import WebhookTarget


class AlertTarget(Protocol):
    @property
    def name(self) -> str:
        """The key of its notices in the database; there is at most one target of each kind."""

    async def send(self, notice: Notice) -> NoticeResult: ...


def alert_targets(config: AlertConfig, http: HttpClient) -> list[AlertTarget]:
    """Every target that the configuration names."""
    named: tuple[AlertTarget | None, ...] = (
        TelegramTarget.of(config, http),
        WebhookTarget.of(config, http),
        SmtpTarget.of(config),
    )
    return [target for target in named if target is not None]
