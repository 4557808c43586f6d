"""The pinned message of a chat: one at a time."""

from typing import Any

import msgspec

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max import places, shapes
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import payload
from autopost_simulator.world import Bot, Chat, World


class PinBody(msgspec.Struct, frozen=True):
    message_id: str
    notify: bool | None = None


class ChatPins:
    def __init__(self, world: World) -> None:
        self._world = world
        self.table = {"/chats/{id}/pin": {"GET": self.get, "PUT": self.put, "DELETE": self.delete}}

    def get(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat = self._open(asked)
        post = chat.posts.get(chat.pinned[-1]) if chat.pinned else None
        return {} if post is None else {"message": shapes.message(chat, post)}

    def put(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat = self._open(asked)
        try:
            body = msgspec.json.decode(asked.body or b"{}", type=PinBody)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise payload(str(error)) from None
        return pin(self._world, chat, body.message_id)

    def delete(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat = self._open(asked)
        if not chat.pinned:
            return {"success": False, "message": "No message is pinned"}
        chat.pinned = []
        return {"success": True}

    def _open(self, asked: OperationCall) -> Chat:
        chat = places.chat_called(self._world, asked.path["id"])
        places.refuse_closed(chat)
        return chat


def pin(world: World, chat: Chat, message_id: str) -> Any:
    place = places.find(world, message_id)
    if place is None or place[0] is not chat:
        return {"success": False, "message": "Message not found"}
    chat.pinned = [place[1].id]
    return {"success": True}
