"""Send one part to Telegram. URLs contain the token, so no URL leaves this module."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec
from autopost_contracts.outcomes import Failed, Scope
from autopost_contracts.payload import GENERAL_TOPIC
from autopost_contracts.plan import MediaPart, Part, PlannedMedia
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpAnswer, HttpError

from autopost_adapters.base import AcceptedPart, Held, Http, Material, MediaMissing, MediaUnreadable, Source, Target
from autopost_adapters.classify import certain, unreachable, with_answer, without_bytes, without_token
from autopost_adapters.multipart import multipart
from autopost_adapters.telegram.answers import TelegramMessage, held, read, read_identity
from autopost_adapters.telegram.calls import TelegramCall, call_for

_NUMBER = re.compile("-?[0-9]{1,18}")


class TelegramAdapter:
    platform = "telegram"
    uploads_apart = False
    can_find = False
    identifies_by_call = False
    patience: Mapping[str, Sequence[timedelta]] = {}

    def __init__(self, http: Http, api_url: str, timeout: timedelta, upload_timeout: timedelta) -> None:
        self._http = http
        self._api_url = api_url.rstrip("/")
        self._timeout = timeout
        self._upload_timeout = upload_timeout

    async def identify(self, token: Secret) -> str | Failed:
        """The bot id is the part of the token before the colon, so no call is needed."""
        bot, colon, _ = token.reveal().partition(":")
        if colon and bot.isascii() and bot.isdigit():
            return bot
        return Failed.permanent(
            Scope.CHANNEL, "unauthorized", "the token must begin with the bot id, as in 123456:AA..."
        )

    async def probe(self, token: Secret, within: timedelta) -> Failed | None:
        try:
            answer = await self._request("getMe", token, json={}, timeout=min(within, self._timeout))
        except HttpError as exc:
            return certain(unreachable(exc))
        failed = read_identity(without_token(answer, token))
        return failed and certain(failed)

    async def send(self, part: Part, target: Target, media: Sequence[Material] = ()) -> AcceptedPart | Failed:
        try:
            messages = await self._call(call_for(part, media), target)
        except HttpError as exc:
            return unreachable(exc)
        except (MediaMissing, MediaUnreadable) as exc:
            return without_bytes(exc)
        if isinstance(messages, Failed):
            return messages
        items = part.media if isinstance(part, MediaPart) else ()
        return AcceptedPart(provider_ids=tuple(message.message_id for message in messages), held=held(items, messages))

    async def upload(self, item: PlannedMedia, source: Source, target: Target) -> Held | Failed:
        raise TypeError("Telegram media is uploaded with the message")

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        raise TypeError("Telegram bots cannot read the messages of a chat")

    async def _call(self, call: TelegramCall, target: Target) -> list[TelegramMessage] | Failed:
        fields = _address(target) | call.fields
        payload: dict[str, Any] = {"json": fields, "timeout": self._timeout}
        if call.files:
            payload = {
                "body": multipart(_as_text(fields), call.files, decodes_names=True),
                "timeout": self._upload_timeout,
            }
        answer = await self._request(call.method, target.token, **payload)
        result = read(answer)
        if isinstance(result, Failed):  # a success keeps only ids, so it needs no masking
            answer = without_token(answer, target.token)
            result = read(answer)
        return with_answer(result, answer) if isinstance(result, Failed) else result

    async def _request(self, method: str, token: Secret, **payload: Any) -> HttpAnswer:
        return await self._http.request(
            "POST",
            f"{self._api_url}/bot{quote(token.reveal(), safe=':')}/{method}",
            span_name=f"telegram {method}",
            template=f"/bot***/{method}",
            **payload,
        )


def _address(target: Target) -> dict[str, Any]:
    """Telegram refuses General by its number."""
    chat: int | str = int(target.chat) if _NUMBER.fullmatch(target.chat) else target.chat
    return {"chat_id": chat} | ({} if target.thread in (None, GENERAL_TOPIC) else {"message_thread_id": target.thread})


def _as_text(fields: Mapping[str, Any]) -> dict[str, str]:
    """A form has only text fields; other values are encoded as JSON."""
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode() for name, value in fields.items()
    }
