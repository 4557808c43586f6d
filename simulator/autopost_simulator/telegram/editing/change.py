"""Edit a text or a caption, delete a message."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.keyboard import inline_keyboard, refuse_buttons_in
from autopost_simulator.telegram.markup.formatting import Formatted
from autopost_simulator.telegram.options import has_address, link_preview
from autopost_simulator.telegram.params import Params
from autopost_simulator.telegram.place import find_chat, role
from autopost_simulator.telegram.refusal import named
from autopost_simulator.telegram.text import caption, message_text, raw_text, refuse_long_caption
from autopost_simulator.world import Bot, Chat, ChatPost, World

DELETABLE_FOR = timedelta(hours=48)


class Changing:
    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def edit_text(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        preview = link_preview(params)
        raw = raw_text(params)
        chat, post = self._to_edit(bot, params)
        if "media" in post.extra:
            raise named("no_text_to_edit")
        written = message_text(raw, may_be_empty=has_address(preview), too_long="edited_message_is_too_long")
        extra = {name: value for name, value in post.extra.items() if name != "link_preview_options"}
        return self._edit(chat, post, written, params, extra | preview, call)

    def edit_caption(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        written = caption(params)
        chat, post = self._to_edit(bot, params)
        if "media" not in post.extra:
            raise named("no_caption_to_edit")
        refuse_long_caption(written)
        extra = {name: value for name, value in post.extra.items() if name != "show_caption_above_media"}
        if params.flag("show_caption_above_media"):
            extra["show_caption_above_media"] = True
        return self._edit(chat, post, written, params, extra, call)

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
        if not _has_a_say(bot, chat, post) or self._clock.now() - post.at > DELETABLE_FOR:
            raise named("message_cant_be_deleted")
        del chat.posts[message_id]
        return True

    def _to_edit(self, bot: Bot, params: Params) -> tuple[Chat, ChatPost]:
        """Inline messages are not simulated, so ``inline_message_id`` is ignored."""
        if not params.text("chat_id") and not params.integer("message_id"):
            raise named("message_identifier_is_not_specified")
        chat = find_chat(self._world, params, "edit")
        post = chat.posts.get(params.integer("message_id") or 0)
        if post is None:
            raise named("message_to_edit_not_found")
        if chat.state == "no_rights" or not (chat.type == "channel" or shapes.written_by(post, bot)):
            raise named("message_cant_be_edited")
        return chat, post

    def _edit(
        self, chat: Chat, post: ChatPost, written: Formatted, params: Params, extra: dict[str, Any], call: ProviderCall
    ) -> dict[str, Any]:
        """Buttons are removed unless they are given again."""
        now = self._clock.now()
        buttons = inline_keyboard(params)
        refuse_buttons_in(chat, buttons)
        edited = replace(post, text=written.text, markup=written.entities, buttons=buttons, extra=extra)
        if edited == post:
            raise named("message_is_not_modified")
        edited = replace(edited, extra=extra | {"edit_date": int(now.timestamp())})
        chat.posts[post.id] = edited
        call.message_ids.append(post.id)
        return shapes.message(chat, edited)


def _has_a_say(bot: Bot, chat: Chat, post: ChatPost) -> bool:
    return shapes.written_by(post, bot) or role(chat) == "administrator"
