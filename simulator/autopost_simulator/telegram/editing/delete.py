"""Delete one or many messages. A bot deletes its own for two days, an administrator those of others too."""

from datetime import timedelta
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.editing.message_ids import read_message_ids
from autopost_simulator.telegram.place import find_chat, role
from autopost_simulator.telegram.refusal import named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.world import Bot, Chat, ChatPost, World

DELETABLE_FOR = timedelta(hours=48)


class Deleting:
    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def delete(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        chat = find_chat(self._world, params, "edit")
        if chat.state == "no_rights":
            raise named("message_cant_be_deleted")
        message_id = params.integer("message_id")
        if message_id is None:
            raise named("message_identifier_is_not_specified")
        post = chat.posts.get(message_id)
        if post is None:
            raise named("message_to_delete_not_found")
        self._refuse(bot, chat, post)
        self._remove(chat, post)
        return True

    def delete_many(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """Messages that do not exist are skipped; one that must stay lets all stay."""
        message_ids = read_message_ids(params)
        chat = find_chat(self._world, params, "edit")
        if chat.state == "no_rights":
            raise named("message_cant_be_deleted")
        found = [chat.posts[message_id] for message_id in message_ids if message_id in chat.posts]
        for post in found:
            self._refuse(bot, chat, post)
        for post in found:
            self._remove(chat, post)
        return True

    def _refuse(self, bot: Bot, chat: Chat, post: ChatPost) -> None:
        may = shapes.written_by(post, bot) or role(chat) == "administrator" or chat.type == "private"
        if not may or self._clock.now() - post.at > DELETABLE_FOR:
            raise named("message_cant_be_deleted")

    def _remove(self, chat: Chat, post: ChatPost) -> None:
        chat.posts.pop(post.id, None)
        chat.pinned = [message_id for message_id in chat.pinned if message_id != post.id]
