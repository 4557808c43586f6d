"""Tell a Telegram chat, through the same adapter that posts go through."""

from datetime import timedelta
from typing import Self

from autopost_adapters.base import Target
from autopost_adapters.telegram.send import TelegramAdapter
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_contracts.plan import Preview, TextPart
from autopost_runtime.http import HttpClient
from msgspec.structs import replace

from autopost_monitor.alert_config import AlertConfig
from autopost_monitor.alert_ending import Delivered, Ending, Refused, Unreachable
from autopost_monitor.alert_gateway import Notice
from autopost_monitor.alert_text import letter

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

    async def tell(self, notice: Notice) -> Ending:
        part = TextPart(text=letter(notice.facts).text[:LONGEST], preview=Preview(disabled=True))
        ended = await self._adapter.send(part, self._chat)
        if isinstance(ended, Failed) and ended.migrated_to:  # the group has become a bigger one, under another number
            self._chat = replace(self._chat, chat=ended.migrated_to)
            ended = await self._adapter.send(part, self._chat)
        return _judged(ended) if isinstance(ended, Failed) else Delivered()


def _judged(failed: Failed) -> Ending:
    if failed.category is Category.PERMANENT and failed.scope is Scope.DELIVERY:
        return Refused(failed.code)
    wait = None if failed.retry_after_ms is None else timedelta(milliseconds=failed.retry_after_ms)
    return Unreachable(failed.code, wait)
