"""Pinned messages of a chat, the newest last."""

from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram.place import find_chat, role
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.world import Bot, Chat, World


class Pins:
    def __init__(self, world: World) -> None:
        self._world = world
        self.table = (
            ("pinChatMessage", self.pin),
            ("unpinChatMessage", self.unpin),
            ("unpinAllChatMessages", self.unpin_all),
        )

    def pin(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        chat = find_chat(self._world, params, "edit")
        message_id = params.integer("message_id") or 0
        if message_id not in chat.posts:
            raise TelegramError(400, "Bad Request: message to pin not found")
        _refuse_without_right(chat)
        chat.pinned = [one for one in chat.pinned if one != message_id] + [message_id]
        return True

    def unpin(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """Without ``message_id`` the newest pinned one."""
        chat = find_chat(self._world, params, "edit")
        message_id = params.integer("message_id") or (chat.pinned[-1] if chat.pinned else 0)
        if message_id not in chat.posts:
            raise TelegramError(400, "Bad Request: message to unpin not found")
        _refuse_without_right(chat)
        chat.pinned = [one for one in chat.pinned if one != message_id]
        return True

    def unpin_all(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        chat = find_chat(self._world, params, "edit")
        _refuse_without_right(chat)
        chat.pinned = []
        return True


def _refuse_without_right(chat: Chat) -> None:
    if chat.type != "private" and (role(chat) != "administrator" or chat.state == "no_rights"):
        raise TelegramError(400, "Bad Request: not enough rights to manage pinned messages in the chat")
