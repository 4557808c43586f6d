"""Button callbacks, and the answers of bots: an edited message or a notification."""

from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max import places, shapes
from autopost_simulator.max.messages import Messages
from autopost_simulator.max.new_message import NewMessageBody
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import payload
from autopost_simulator.world import Bot, Chat, ChatPost, World

CALLBACKS_KEPT = 10_000


class AnswerBody(msgspec.Struct, frozen=True):
    message: NewMessageBody | None = None
    notification: str | None = None


@dataclass(slots=True, kw_only=True)
class Callback:
    id: str
    bot: Bot
    user_id: int
    message_id: str
    payload: str
    answers: int = 0
    notification: str | None = None

    def describe(self) -> dict[str, Any]:
        return {
            "callback_id": self.id,
            "user_id": self.user_id,
            "message_id": self.message_id,
            "payload": self.payload,
            "answers": self.answers,
            "notification": self.notification,
        }


class Callbacks:
    """Presses in order. All presses on one keyboard have one id, so an answer goes to the last of them."""

    def __init__(self, world: World, messages: Messages) -> None:
        self._world = world
        self._messages = messages
        self._presses: deque[Callback] = deque(maxlen=CALLBACKS_KEPT)
        self.table = {"/answers": {"POST": self.answer}}

    def press(self, chat: Chat, post: ChatPost, user_id: int, payload: str) -> Callback:
        callback = Callback(
            id=shapes.callback_id(chat, post),
            bot=post.bot,
            user_id=user_id,
            message_id=shapes.mid(chat.id, post.id),
            payload=payload,
        )
        self._presses.append(callback)
        return callback

    def answer(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        body = _decode(asked.body)
        callback = self._last(asked.query.get("callback_id", ""), bot)
        if callback is None:
            return {"success": False, "message": "Callback not found"}
        place = places.find(self._world, callback.message_id)
        if place is None:
            return {"success": False, "message": "Message not found"}
        call.chat = str(place[0].id)
        places.refuse_closed(place[0])
        self._messages.take_slot(bot, place[0])
        if body.message is not None:
            self._messages.change(place, body.message, bot, asked.origin)
            call.message_ids.append(callback.message_id)
        callback.answers += 1
        callback.notification = body.notification or callback.notification
        return {"success": True}

    def describe(self) -> list[dict[str, Any]]:
        return [callback.describe() for callback in self._presses]

    def clear(self) -> None:
        self._presses.clear()

    def _last(self, callback_id: str, bot: Bot) -> Callback | None:
        found = (one for one in reversed(self._presses) if one.id == callback_id and one.bot is bot)
        return next(found, None)


def _decode(raw: bytes) -> AnswerBody:
    """An empty answer is refused. The words were not observed."""
    try:
        body = msgspec.json.decode(raw or b"{}", type=AnswerBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise payload(str(error)) from None
    if body.message is None and not body.notification:
        raise payload("One of `message` or `notification` is required")
    return body
