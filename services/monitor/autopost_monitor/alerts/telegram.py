"""Send notices to a Telegram chat, with the adapter that also sends posts."""

from datetime import timedelta
from typing import Self

from autopost_adapters.base import Target
from autopost_adapters.telegram.send import TelegramAdapter
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_contracts.plan import Preview, TextPart
from autopost_runtime.http.client import HttpClient
from msgspec.structs import replace

from autopost_monitor.alerts.config import AlertConfig
from autopost_monitor.alerts.gateway import Notice
from autopost_monitor.alerts.notice_result import (
    LONGEST_NOTICE_WAIT,
    NoticeDelivered,
    NoticeRejected,
    NoticeResult,
    TargetUnreachable,
)
from autopost_monitor.alerts.text import notice_text

LONGEST = 4000


class TelegramTarget:
    name = "telegram"

    def __init__(self, adapter: TelegramAdapter, chat: Target) -> None:
        self._adapter = adapter
        self._chat = chat

    @classmethod
    def of(cls, config: AlertConfig, http: HttpClient) -> Self | None:
        if config.alert_telegram_token is None or config.alert_telegram_chat is None:
            return None
        adapter = TelegramAdapter(http, config.telegram_api_url, config.alert_timeout, config.alert_timeout)
        chat = Target(
            chat=config.alert_telegram_chat, token=config.alert_telegram_token, thread=config.alert_telegram_thread
        )
        return cls(adapter, chat)

    async def send(self, notice: Notice) -> NoticeResult:
        part = TextPart(text=notice_text(notice.facts).text[:LONGEST], preview=Preview(disabled=True))
        ended = await self._adapter.send(part, self._chat)
        if isinstance(ended, Failed) and ended.migrated_to:  # the group became a supergroup with another id
            self._chat = replace(self._chat, chat=ended.migrated_to)
            ended = await self._adapter.send(part, self._chat)
        return refusal(ended) if isinstance(ended, Failed) else NoticeDelivered()


def refusal(failed: Failed) -> NoticeResult:
    if failed.category is Category.PERMANENT and failed.scope is Scope.DELIVERY:
        return NoticeRejected(failed.code)
    wait = (
        None
        if failed.retry_after_ms is None
        else min(timedelta(milliseconds=failed.retry_after_ms), LONGEST_NOTICE_WAIT)
    )
    return TargetUnreachable(failed.code, wait)
