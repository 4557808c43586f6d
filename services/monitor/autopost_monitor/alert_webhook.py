"""Tell a webhook: one JSON object per notice, signed as Standard Webhooks has it when there is a secret."""

import base64
import hmac
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Self

import msgspec
from autopost_runtime.config import Secret
from autopost_runtime.http import HttpAnswer, HttpClient, HttpError

from autopost_monitor.alert_config import AlertConfig, signing_key
from autopost_monitor.alert_ending import Delivered, Ending, Refused, Unreachable
from autopost_monitor.alert_gateway import Notice
from autopost_monitor.alert_text import letter

ABOUT_THE_BODY = frozenset({400, 413, 415, 422})
LONGEST_WAIT = timedelta(hours=1)


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

    async def tell(self, notice: Notice) -> Ending:
        body = msgspec.json.encode(content(notice))
        try:
            answer = await self._http.request(
                "POST",
                self._url.reveal(),
                json=msgspec.Raw(body),
                headers=self._headers(notice, body),
                timeout=self._timeout,
                span_name="alert webhook",
                template="/***",
            )
        except HttpError as exc:
            return Unreachable(exc.code)
        return _judged(answer)

    def _headers(self, notice: Notice, body: bytes) -> dict[str, str]:
        stamp = str(int(self._now()))
        headers = {"webhook-id": notice.id, "webhook-timestamp": stamp}
        if self._key:
            signature = hmac.digest(self._key, f"{notice.id}.{stamp}.".encode() + body, "sha256")
            headers["webhook-signature"] = f"v1,{base64.b64encode(signature).decode()}"
        return headers


def content(notice: Notice) -> dict[str, Any]:
    facts, words = notice.facts, letter(notice.facts)
    told: dict[str, Any] = msgspec.to_builtins(facts)
    return {
        **told,
        "type": f"alert.{notice.kind}",
        "id": notice.id,
        "alert_id": str(notice.alert_id),
        "subject": words.subject,
        "text": words.text,
    }


def _judged(answer: HttpAnswer) -> Ending:
    if 200 <= answer.status < 300:
        return Delivered()
    code = f"http_{answer.status}"
    return Refused(code) if answer.status in ABOUT_THE_BODY else Unreachable(code, _wait(answer))


def _wait(answer: HttpAnswer) -> timedelta | None:
    asked = answer.headers.get("Retry-After", "")
    return min(timedelta(seconds=int(asked)), LONGEST_WAIT) if asked.isascii() and asked.isdigit() else None
