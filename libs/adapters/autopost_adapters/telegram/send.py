"""Send one part to Telegram. The token is part of the URL, so no URL leaves this module."""

from datetime import timedelta
from typing import Any

from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import Part, TextPart
from autopost_runtime.http import HttpError

from autopost_adapters.base import Accepted, Http, Target
from autopost_adapters.classify import unreachable
from autopost_adapters.telegram.classify import read


class TelegramAdapter:
    platform = "telegram"

    def __init__(self, http: Http, api_url: str, timeout: timedelta) -> None:
        self._http = http
        self._api_url = api_url.rstrip("/")
        self._timeout = timeout

    async def send(self, part: Part, target: Target) -> Accepted | Failed:
        return await self._call("sendMessage", target, text_fields(part))

    async def _call(self, method: str, target: Target, fields: dict[str, Any]) -> Accepted | Failed:
        address: dict[str, Any] = {"chat_id": _chat(target.chat)}
        if target.thread is not None:
            address["message_thread_id"] = target.thread
        try:
            answer = await self._http.request(
                "POST",
                f"{self._api_url}/bot{target.token.reveal()}/{method}",
                json=address | fields,
                timeout=self._timeout,
                span_name=f"telegram {method}",
                template=f"/bot***/{method}",
            )
        except HttpError as exc:
            return unreachable(exc)
        told = read(answer)
        return told if isinstance(told, Failed) else Accepted(provider_ids=(str(told.message_id),))


def text_fields(part: TextPart) -> dict[str, Any]:
    fields: dict[str, Any] = {"text": part.text}
    if part.markup == "html":
        fields["parse_mode"] = "HTML"
    if part.preview.disabled:
        fields["link_preview_options"] = {"is_disabled": True}
    if part.silent:
        fields["disable_notification"] = True
    if part.protect:
        fields["protect_content"] = True
    if part.buttons:
        fields["reply_markup"] = {
            "inline_keyboard": [[{"text": button.text, "url": button.url} for button in row] for row in part.buttons]
        }
    return fields


def _chat(chat: str) -> int | str:
    return int(chat) if chat.lstrip("-").isdigit() else chat
