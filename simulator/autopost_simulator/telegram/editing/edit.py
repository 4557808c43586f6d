"""Edit the text, the caption, the media or the buttons of a message."""

from dataclasses import replace
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.keyboard import inline_keyboard, refuse_buttons_in
from autopost_simulator.telegram.place import find_chat
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.sending.album import read_input_media
from autopost_simulator.telegram.sending.options import has_address, link_preview
from autopost_simulator.telegram.sending.take_in import Intake
from autopost_simulator.telegram.standing import MediaKind
from autopost_simulator.telegram.storage.files import TelegramFiles
from autopost_simulator.telegram.text import caption, message_text, raw_text, refuse_long_caption
from autopost_simulator.world import Bot, Chat, ChatPost, World

_MEDIA_FIELDS = ("photo", "video", "document", "audio", "animation", "media", "has_media_spoiler")
_NEVER_MEDIA = ("voice", "sticker", "poll", "location")
_IN_ALBUM: tuple[MediaKind, ...] = ("photo", "video")


class Editing:
    def __init__(self, world: World, clock: Clock, files: TelegramFiles, intake: Intake) -> None:
        self._world = world
        self._clock = clock
        self._files = files
        self._intake = intake

    def edit_text(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        preview = link_preview(params)
        raw = raw_text(params)
        buttons = inline_keyboard(params)
        chat, post = self._to_edit(bot, params)
        if "media" in post.extra or "poll" in post.extra or "location" in post.extra:
            raise named("no_text_to_edit")
        written = message_text(raw, may_be_empty=has_address(preview), too_long="edited_message_is_too_long")
        extra = {name: value for name, value in post.extra.items() if name != "link_preview_options"} | preview
        new = replace(post, text=written.text, markup=written.entities, extra=extra)
        return self._put(chat, post, new, buttons, call)

    def edit_caption(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        buttons = inline_keyboard(params)
        written = caption(params)
        chat, post = self._to_edit(bot, params)
        if "media" not in post.extra or "sticker" in post.extra:
            raise named("no_caption_to_edit")
        refuse_long_caption(written)
        extra = {name: value for name, value in post.extra.items() if name != "show_caption_above_media"}
        if params.flag("show_caption_above_media"):
            extra["show_caption_above_media"] = True
        new = replace(post, text=written.text, markup=written.entities, extra=extra)
        return self._put(chat, post, new, buttons, call)

    def edit_media(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """A text may become media; an item of an album keeps its class."""
        buttons = inline_keyboard(params)
        requested = read_input_media(params)
        chat, post = self._to_edit(bot, params)
        if any(name in post.extra for name in _NEVER_MEDIA):
            raise TelegramError(400, "Bad Request: message media can't be edited")
        file = self._intake.take_in(bot, requested)
        refuse_long_caption(requested.caption)
        _refuse_another_class(post, requested.kind)
        kept = {
            name: value for name, value in post.extra.items() if name not in (*_MEDIA_FIELDS, "link_preview_options")
        }
        fields = shapes.media_fields(file, self._files.id_for(bot, file))
        extra = kept | {"media": shapes.media_shown(file)} | fields | requested.options
        new = replace(post, text=requested.caption.text, markup=requested.caption.entities, extra=extra)
        return self._put(chat, post, new, buttons, call)

    def edit_buttons(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        buttons = inline_keyboard(params)
        chat, post = self._to_edit(bot, params)
        return self._put(chat, post, post, buttons, call)

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

    def _put(
        self, chat: Chat, post: ChatPost, new: ChatPost, buttons: dict[str, Any] | None, call: ProviderCall
    ) -> dict[str, Any]:
        """Buttons are removed unless they are given again."""
        refuse_buttons_in(chat, buttons)
        edited = replace(new, buttons=buttons)
        if edited == post:
            raise named("message_is_not_modified")
        edited = replace(edited, extra=edited.extra | {"edit_date": int(self._clock.now().timestamp())})
        chat.posts[post.id] = edited
        call.message_ids.append(post.id)
        return shapes.message(chat, edited)


def _refuse_another_class(post: ChatPost, kind: MediaKind) -> None:
    if "media_group_id" not in post.extra:
        return
    old = next(one["kind"] for one in post.extra["media"])
    if kind == "animation":
        raise TelegramError(400, "Bad Request: message content type can't be used in an album")
    if old != kind and not {old, kind} <= set(_IN_ALBUM):
        raise TelegramError(400, "Bad Request: can't change media type in the album")
