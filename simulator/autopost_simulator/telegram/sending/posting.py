"""Show a new message in its chat, within the rate limits of the bot."""

from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.limits import Windows
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.markup.formatting import Formatted
from autopost_simulator.telegram.refusal import TelegramRateLimited
from autopost_simulator.world import Bot, Chat, ChatPost


class Posting:
    def __init__(self, windows: Windows, clock: Clock) -> None:
        self._windows = windows
        self._clock = clock

    def take_slot(self, bot: Bot, chat: Chat) -> None:
        token = ("telegram", bot.token)
        wait = self._windows.take((token, bot.limits), ((*token, chat.id), chat.limits))
        if wait:
            raise TelegramRateLimited(wait)

    def show(
        self, bot: Bot, chat: Chat, written: Formatted, buttons: Any, extra: dict[str, Any], call: ProviderCall
    ) -> dict[str, Any]:
        post = ChatPost(
            id=chat.last_id + 1,
            bot=bot,
            at=self._clock.now(),
            text=written.text,
            markup=written.entities,
            buttons=buttons,
            extra=extra,
        )
        chat.show(post)
        call.message_ids.append(post.id)
        return shapes.message(chat, post)
