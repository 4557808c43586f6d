"""Chats of a bot: info, membership and actions such as typing."""

from typing import Any, Literal

import msgspec

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max import places, shapes
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import payload
from autopost_simulator.world import Bot, World


class ChatAction(msgspec.Struct, frozen=True):
    action: Literal["typing_on", "sending_photo", "sending_video", "sending_audio", "sending_file", "mark_seen"]


class Chats:
    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self.table = {
            "/me": {"GET": self.me},
            "/chats/{id}": {"GET": self.get},
            "/chats/{id}/members/me": {"GET": self.membership},
            "/chats/{id}/actions": {"POST": self.act},
        }

    def me(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        return shapes.user(bot, self._clock.now()) | {"description": ""}

    def get(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        return shapes.chat(places.chat_called(self._world, asked.path["id"]), self._clock.now())

    def membership(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat = places.chat_called(self._world, asked.path["id"])
        if chat.state != "no_rights":
            places.refuse_closed(chat)
        return shapes.membership(bot, chat, self._clock.now())

    def act(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        places.refuse_closed(places.chat_called(self._world, asked.path["id"]))
        try:
            msgspec.json.decode(asked.body, type=ChatAction)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise payload(str(error)) from None
        return {"success": True}
