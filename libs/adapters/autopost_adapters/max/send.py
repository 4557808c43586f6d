"""Send one part to MAX."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import Part, TextPart
from autopost_runtime.http import HttpError

from autopost_adapters.base import Accepted, Http, Target
from autopost_adapters.classify import unreachable
from autopost_adapters.max.classify import read


class MaxAdapter:
    platform = "max"

    def __init__(self, http: Http, api_url: str, timeout: timedelta) -> None:
        self._http = http
        self._api_url = api_url.rstrip("/")
        self._timeout = timeout

    async def send(self, part: Part, target: Target) -> Accepted | Failed:
        query = {"chat_id": target.chat} | ({"disable_link_preview": "true"} if part.preview.disabled else {})
        try:
            answer = await self._http.request(
                "POST",
                f"{self._api_url}/messages?{urlencode(query)}",
                json=message_body(part),
                headers={"Authorization": target.token.reveal()},
                timeout=self._timeout,
                span_name="max messages",
                template="/messages",
            )
        except HttpError as exc:
            return unreachable(exc)
        told = read(answer)
        return told if isinstance(told, Failed) else Accepted(provider_ids=(told.body.mid,))


def message_body(part: TextPart) -> dict[str, Any]:
    body: dict[str, Any] = {"text": part.text}
    if part.markup != "plain":
        body["format"] = part.markup
    if part.buttons:
        rows = [[{"type": "link", "text": button.text, "url": button.url} for button in row] for row in part.buttons]
        body["attachments"] = [{"type": "inline_keyboard", "payload": {"buttons": rows}}]
    return body
