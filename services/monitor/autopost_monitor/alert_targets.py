"""Who is told of alerts: one small class per kind of target.

A target has its own client and its own time limit, and is asked outside of any transaction: one that is away, or that
answers nonsense, costs nobody else anything.
"""

from typing import Protocol

from autopost_runtime.http import HttpClient

from autopost_monitor.alert_config import AlertConfig
from autopost_monitor.alert_ending import Ending
from autopost_monitor.alert_gateway import Notice
from autopost_monitor.alert_smtp import SmtpTarget
from autopost_monitor.alert_telegram import TelegramTarget
from autopost_monitor.alert_webhook import WebhookTarget


class AlertTarget(Protocol):
    @property
    def name(self) -> str:
        """Under which its notices lie in the database; there is one of each kind."""

    async def tell(self, notice: Notice) -> Ending: ...


def alert_targets(config: AlertConfig, http: HttpClient) -> list[AlertTarget]:
    """Every target that the configuration names."""
    named: tuple[AlertTarget | None, ...] = (
        TelegramTarget.of(config, http),
        WebhookTarget.of(config, http),
        SmtpTarget.of(config),
    )
    return [target for target in named if target is not None]
