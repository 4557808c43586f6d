"""Where notices to owners go: a chat, a mailbox or a URL of the owner's own, by the targets of alerts.

An owner's URL is foreign input: it is called through the guard that keeps fetches out of internal networks. The bot
and the mail server are those that send alerts.
"""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec
from autopost_adapters.base import Target
from autopost_adapters.telegram.send import TelegramAdapter
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import Preview, TextPart
from autopost_runtime.config.load import Secret
from autopost_runtime.fetch.addresses import Guard
from autopost_runtime.fetch.fetch import Fetcher, Unfetched
from autopost_runtime.http.client import HttpAnswer, HttpClient

from autopost_monitor.alerts.config import AlertConfig, signing_key
from autopost_monitor.alerts.notice_result import NoticeDelivered, NoticeResult, TargetUnreachable
from autopost_monitor.alerts.smtp import SmtpServer, new_mail
from autopost_monitor.alerts.telegram import LONGEST, refusal
from autopost_monitor.alerts.webhook import judge, signed
from autopost_monitor.owners.gateway import OwnerNotice
from autopost_monitor.owners.text import owner_text


class OwnerTarget(Protocol):
    async def send(self, notice: OwnerNotice) -> NoticeResult: ...


def owner_targets(config: AlertConfig, http: HttpClient) -> Mapping[str, OwnerTarget]:
    """By the name that ``owner_target`` gives them; those that the configuration has."""
    fetcher = Fetcher(Guard(config.fetch_allow, config.fetch_ports, config.fetch_deny), ca_bundle=config.ca_bundle)
    key = signing_key(config.owner_webhook_secret) if config.owner_webhook_secret else None
    targets: dict[str, OwnerTarget] = {"webhook": OwnerWebhook(fetcher, key, config.alert_timeout)}
    if config.alert_telegram_token is not None:
        adapter = TelegramAdapter(http, config.telegram_api_url, config.alert_timeout, config.alert_timeout)
        targets["telegram"] = OwnerChat(adapter, config.alert_telegram_token)
    if (smtp := SmtpServer.of(config)) is not None:
        targets["smtp"] = OwnerMail(smtp)
    return targets


class OwnerChat:
    def __init__(self, adapter: TelegramAdapter, token: Secret) -> None:
        self._adapter = adapter
        self._token = token

    async def send(self, notice: OwnerNotice) -> NoticeResult:
        part = TextPart(text=owner_text(notice).text[:LONGEST], preview=Preview(disabled=True))
        ended = await self._adapter.send(part, Target(chat=_without_scheme(notice.owner), token=self._token))
        return refusal(ended) if isinstance(ended, Failed) else NoticeDelivered()


class OwnerMail:
    def __init__(self, smtp: SmtpServer) -> None:
        self._smtp = smtp

    async def send(self, notice: OwnerNotice) -> NoticeResult:
        recipient = unquote(_without_scheme(notice.owner).partition("?")[0])
        words = owner_text(notice)
        return await self._smtp.send(new_mail(self._smtp.sender, (recipient,), words, notice.notice.at, notice.id))


class OwnerWebhook:
    def __init__(
        self, fetcher: Fetcher, key: bytes | None, timeout: timedelta, now: Callable[[], float] = time.time
    ) -> None:
        self._fetcher = fetcher
        self._key = key
        self._timeout = timeout
        self._now = now

    async def send(self, notice: OwnerNotice) -> NoticeResult:
        body = msgspec.json.encode(content(notice))
        headers = {"Content-Type": "application/json", **signed(notice.id, body, self._key, self._now())}
        fetcher = self._fetcher.on_behalf_of(notice.workspace_id)
        try:
            status, answered = await fetcher.post(notice.owner, body, within=self._timeout, headers=headers)
        except Unfetched as exc:
            return TargetUnreachable(exc.code)
        return judge(HttpAnswer(status, answered, b""))


def content(notice: OwnerNotice) -> dict[str, Any]:
    words = owner_text(notice)
    facts: dict[str, Any] = msgspec.to_builtins(notice.notice)
    return {
        "type": f"publication.{notice.notice.status}",
        "id": notice.id,
        "workspace_id": str(notice.workspace_id),
        "publication_id": str(notice.publication_id),
        "version": notice.version,
        **facts,
        "subject": words.subject,
        "text": words.text,
    }


def _without_scheme(owner: str) -> str:
    return owner.partition(":")[2]
