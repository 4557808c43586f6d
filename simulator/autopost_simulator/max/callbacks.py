"""Button callbacks, and the answers of bots: an edited message or a notification."""

import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max import places
from autopost_simulator.max.messages import Messages
from autopost_simulator.max.new_message import NewMessageBody
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import payload
from autopost_simulator.world import Bot, World

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
    def __init__(self, world: World, messages: Messages) -> None:
        self._world = world
        self._messages = messages
        self._by_id: dict[str, Callback] = {}
        self.table = {"/answers": {"POST": self.answer}}

    def press(self, bot: Bot, user_id: int, message_id: str, payload: str) -> Callback:
        callback = Callback(
            id=secrets.token_urlsafe(48), bot=bot, user_id=user_id, message_id=message_id, payload=payload
        )
        self._by_id[callback.id] = callback
        if len(self._by_id) > CALLBACKS_KEPT:
            del self._by_id[next(iter(self._by_id))]
        return callback

    def answer(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        body = _decode(asked.body)
        callback = self._by_id.get(asked.query.get("callback_id", ""))
        if callback is None or callback.bot is not bot:
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
        return [callback.describe() for callback in self._by_id.values()]

    def clear(self) -> None:
        self._by_id.clear()


def _decode(raw: bytes) -> AnswerBody:
    """An empty answer is refused. The words were not observed."""
    try:
        body = msgspec.json.decode(raw or b"{}", type=AnswerBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise payload(str(error)) from None
    if body.message is None and not body.notification:
        raise payload("One of `message` or `notification` is required")
    return body
