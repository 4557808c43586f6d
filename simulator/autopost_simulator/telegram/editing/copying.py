"""Copy and forward messages to another chat, one or many. What is missing among many is skipped."""

from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.editing.message_ids import read_message_ids
from autopost_simulator.telegram.keyboard import inline_keyboard, refuse_buttons_in
from autopost_simulator.telegram.markup.formatting import Formatted
from autopost_simulator.telegram.place import find_chat, find_chat_named, refuse_without_rights
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.sending.options import common_options
from autopost_simulator.telegram.sending.posting import Posting
from autopost_simulator.telegram.standing import Kind
from autopost_simulator.telegram.text import caption, refuse_long_caption
from autopost_simulator.world import Bot, Chat, ChatPost, World

_PLACE = (
    "message_thread_id",
    "is_topic_message",
    "reply_to_message",
    "has_protected_content",
    "media_group_id",
    "edit_date",
    "from",
    "by_person",
    "forward_origin",
)
_KINDS: tuple[Kind, ...] = ("photo", "video", "animation", "document", "audio", "voice", "sticker", "poll", "location")


class Copying:
    def __init__(self, world: World, posting: Posting) -> None:
        self._world = world
        self._posting = posting

    def copy(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """Answers with the number only. A caption may be replaced, buttons are only those of the call."""
        new_caption = caption(params) if params.text("caption") else None
        buttons = inline_keyboard(params)
        _, post = self._one(params, "copy")
        chat = find_chat(self._world, params, "write")
        written = Formatted(post.text or "", post.markup)
        if new_caption is not None and "media" in post.extra:
            refuse_long_caption(new_caption)
            written = new_caption
        refuse_buttons_in(chat, buttons)
        shown = self._show(bot, chat, post, written, buttons, common_options(chat, params), call)
        return {"message_id": shown["message_id"]}

    def forward(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        source, post = self._one(params, "forward")
        chat = find_chat(self._world, params, "write")
        extra = common_options(chat, params) | {"forward_origin": _origin(source, post)}
        return self._show(bot, chat, post, Formatted(post.text or "", post.markup), None, extra, call)

    def copy_many(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return self._many(bot, params, call, is_forward=False)

    def forward_many(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return self._many(bot, params, call, is_forward=True)

    def _many(self, bot: Bot, params: Params, call: ProviderCall, *, is_forward: bool) -> Any:
        chat = find_chat(self._world, params, "write")
        source = find_chat_named(self._world, params, "from_chat_id", "read")
        posts = [source.posts[one] for one in read_message_ids(params) if one in source.posts]
        posts = [post for post in posts if "has_protected_content" not in post.extra]
        if not posts:
            raise TelegramError(400, "Bad Request: there are no messages to forward")
        shown = []
        for post in posts:
            extra = common_options(chat, params) | ({"forward_origin": _origin(source, post)} if is_forward else {})
            written = Formatted(post.text or "", post.markup)
            if params.flag("remove_caption") and "media" in post.extra:
                written = Formatted("", [])
            shown.append(self._show(bot, chat, post, written, None, extra, call))
        return [{"message_id": one["message_id"]} for one in shown]

    def _one(self, params: Params, verb: str) -> tuple[Chat, ChatPost]:
        if not params.text("from_chat_id"):
            raise TelegramError(400, 'Bad Request: parameter "from_chat_id" is required')
        source = find_chat_named(self._world, params, "from_chat_id", "read")
        post = source.posts.get(params.integer("message_id") or 0)
        if post is None:
            raise TelegramError(400, f"Bad Request: message to {verb} not found")
        if "has_protected_content" in post.extra:
            done = "copied" if verb == "copy" else "forwarded"
            raise TelegramError(400, f"Bad Request: the message can't be {done}")
        return source, post

    def _show(
        self, bot: Bot, chat: Chat, post: ChatPost, written: Formatted, buttons: Any, extra: Any, call: ProviderCall
    ) -> dict[str, Any]:
        refuse_without_rights(chat, next((kind for kind in _KINDS if kind in post.extra), "text"))
        content = {name: value for name, value in post.extra.items() if name not in _PLACE}
        self._posting.take_slot(bot, chat)
        return self._posting.show(bot, chat, written, buttons, content | extra, call)


def _origin(source: Chat, post: ChatPost) -> dict[str, Any]:
    """What was forwarded before keeps its first origin."""
    if "forward_origin" in post.extra:
        known: dict[str, Any] = post.extra["forward_origin"]
        return known
    date = int(post.at.timestamp())
    if source.type == "channel":
        return {"type": "channel", "date": date, "chat": shapes.chat(source), "message_id": post.id}
    return {"type": "user", "date": date, "sender_user": post.extra.get("from") or shapes.user(post.bot)}
