"""Send notices to a webhook: one JSON object each, signed as in Standard Webhooks if a secret is configured."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import msgspec
from autopost_adapters.classify import wait_asked
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer, HttpClient, HttpError
from standardwebhooks import Webhook

from autopost_monitor.alerts.config import AlertConfig, signing_key
from autopost_monitor.alerts.gateway import Notice
from autopost_monitor.alerts.notice_result import (
    LONGEST_NOTICE_WAIT,
    NoticeDelivered,
    NoticeRejected,
    NoticeResult,
    TargetUnreachable,
)
from autopost_monitor.alerts.text import notice_text

BODY_REJECTED = frozenset({400, 413, 415, 422})


class WebhookTarget:
    name = "webhook"

    def __init__(
        self,
        http: HttpClient,
        url: Secret,
        key: bytes | None,
        timeout: timedelta,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._http = http
        self._url = url
        self._key = key
        self._timeout = timeout
        self._now = now

    @classmethod
    def of(cls, config: AlertConfig, http: HttpClient) -> Self | None:
        if config.alert_webhook_url is None:
            return None
        key = signing_key(config.alert_webhook_secret) if config.alert_webhook_secret else None
        return cls(http, config.alert_webhook_url, key, config.alert_timeout)

    async def send(self, notice: Notice) -> NoticeResult:
        body = msgspec.json.encode(content(notice))
        try:
            answer = await self._http.request(
                "POST",
                self._url.reveal(),
                json=msgspec.Raw(body),
                headers=signed(notice.id, body, self._key, self._now()),
                timeout=self._timeout,
                span_name="alert webhook",
                template="/***",
            )
        except HttpError as exc:
            return TargetUnreachable(exc.code)
        return judge(answer)


def content(notice: Notice) -> dict[str, Any]:
    facts, words = notice.facts, notice_text(notice.facts)
    fields: dict[str, Any] = msgspec.to_builtins(facts)
    return {
        **fields,
        "type": f"alert.{notice.kind}",
        "id": notice.id,
        "alert_id": str(notice.alert_id),
        "subject": words.subject,
        "text": words.text,
    }


def signed(notice: str, body: bytes, key: bytes | None, now: float) -> dict[str, str]:
    """The headers of Standard Webhooks, without a key those that need none."""
    at = datetime.fromtimestamp(int(now), UTC)
    headers = {"webhook-id": notice, "webhook-timestamp": str(int(at.timestamp()))}
    if key:
        headers["webhook-signature"] = Webhook(key).sign(notice, at, body.decode())
    return headers


def judge(answer: HttpAnswer) -> NoticeResult:
    if 200 <= answer.status < 300:
        return NoticeDelivered()
    code = f"http_{answer.status}"
    return NoticeRejected(code) if answer.status in BODY_REJECTED else TargetUnreachable(code, _wait(answer))


def _wait(answer: HttpAnswer) -> timedelta | None:
    asked = wait_asked(answer)
    return None if asked is None else min(timedelta(milliseconds=asked), LONGEST_NOTICE_WAIT)
