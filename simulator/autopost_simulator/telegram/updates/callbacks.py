"""Pressed buttons, and ``answerCallbackQuery``."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.world import Bot

CALLBACKS_KEPT = 10_000
LONGEST_NOTICE = 200
ANSWERED_WITHIN = timedelta(seconds=150)
"""The time that the update waits for a bot; how long an answer is accepted is not documented."""


@dataclass(slots=True, kw_only=True)
class PressedButton:
    id: str
    bot: Bot
    user_id: int
    chat_id: int
    message_id: int
    data: str
    at: datetime
    answers: int = 0
    text: str | None = None
    show_alert: bool = False

    def describe(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "user_id": self.user_id,
            "chat_id": self.chat_id,
            "message_id": self.message_id,
            "data": self.data,
            "answers": self.answers,
            "text": self.text,
            "show_alert": self.show_alert,
        }


class CallbackQueries:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_id: dict[str, PressedButton] = {}
        self.table = (("answerCallbackQuery", self.answer),)

    def press(self, bot: Bot, user_id: int, chat_id: int, message_id: int, data: str) -> PressedButton:
        pressed = PressedButton(
            id=str(secrets.randbits(62) + 1),
            bot=bot,
            user_id=user_id,
            chat_id=chat_id,
            message_id=message_id,
            data=data,
            at=self._clock.now(),
        )
        self._by_id[pressed.id] = pressed
        if len(self._by_id) > CALLBACKS_KEPT:
            del self._by_id[next(iter(self._by_id))]
        return pressed

    def answer(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        pressed = self._by_id.get(params.text("callback_query_id"))
        if pressed is None or pressed.bot.id != bot.id or self._clock.now() - pressed.at > ANSWERED_WITHIN:
            raise named("query_is_too_old")
        text = params.text("text")
        if len(text) > LONGEST_NOTICE:
            raise TelegramError(400, "Bad Request: MESSAGE_TOO_LONG")
        if params.text("url") and not params.text("url").startswith((f"https://t.me/{bot.username}?", "tg://")):
            raise TelegramError(400, "Bad Request: URL_INVALID")
        call.chat = str(pressed.chat_id)
        pressed.answers += 1
        pressed.text = text or pressed.text
        pressed.show_alert = params.flag("show_alert")
        return True

    def describe(self) -> list[dict[str, Any]]:
        return [pressed.describe() for pressed in self._by_id.values()]

    def clear(self) -> None:
        self._by_id.clear()
