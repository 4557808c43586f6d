"""What each Bot API method does to the world; refusals are raised in the order Telegram checks."""

from collections.abc import Callable
from typing import Any

import msgspec

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import Call
from autopost_simulator.limits import Windows
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.keyboard import inline_keyboard
from autopost_simulator.telegram.params import Params
from autopost_simulator.telegram.refusal import RateLimited, Refused, named
from autopost_simulator.telegram.text import message_text
from autopost_simulator.world import Bot, Chat, Post, World

Method = Callable[[Bot, Params, Call], Any]


class Methods:
    def __init__(self, world: World, windows: Windows, clock: Clock) -> None:
        self._world = world
        self._windows = windows
        self._clock = clock
        self._methods: dict[str, tuple[str, Method]] = {
            name.lower(): (name, method)
            for name, method in (
                ("getMe", self.get_me),
                ("getChat", self.get_chat),
                ("sendMessage", self.send_message),
                ("deleteMessage", self.delete_message),
            )
        }

    def canonical(self, name: str) -> str:
        known = self._methods.get(name.lower())
        return known[0] if known else name

    def run(self, name: str, bot: Bot, params: Params, call: Call) -> Any:
        known = self._methods.get(name.lower())
        if known is None:
            raise named("method_not_found")
        return known[1](bot, params, call)

    def get_me(self, bot: Bot, params: Params, call: Call) -> Any:
        return shapes.me(bot)

    def get_chat(self, bot: Bot, params: Params, call: Call) -> Any:
        chat = self.find_chat(params)
        _refuse_absent(chat)
        return shapes.full_chat(chat)

    def send_message(self, bot: Bot, params: Params, call: Call) -> Any:
        formatted = message_text(params)
        buttons = inline_keyboard(params)
        chat = self.find_chat(params)
        _refuse_absent(chat)
        _refuse_without_rights(chat)
        extra = _reply_to(chat, params) | _link_preview(params)
        self._take_slot(bot, chat)
        post = Post(
            id=chat.last_id + 1,
            bot=bot,
            at=self._clock.now(),
            text=formatted.text,
            markup=formatted.entities,
            buttons=buttons,
            extra=extra,
        )
        chat.show(post)
        call.message_ids.append(post.id)
        return shapes.message(chat, post)

    def delete_message(self, bot: Bot, params: Params, call: Call) -> Any:
        chat = self.find_chat(params)
        _refuse_absent(chat)
        if chat.state == "no_rights":
            raise named("message_cant_be_deleted")
        message_id = params.integer("message_id")
        if message_id is None:
            raise named("message_identifier_is_not_specified")
        if chat.posts.pop(message_id, None) is None:
            raise named("message_to_delete_not_found")
        return True

    def find_chat(self, params: Params) -> Chat:
        given = params.text("chat_id").strip()
        if not given:
            raise named("chat_id_is_empty")
        chat_id = params.integer("chat_id")
        if chat_id is not None:
            chat = self._world.chat("telegram", chat_id)
        else:
            chat = self._world.chat_by_username("telegram", given) if given.startswith("@") else None
        if chat is None:
            raise named("chat_not_found")
        return chat

    def _take_slot(self, bot: Bot, chat: Chat) -> None:
        token = ("telegram", bot.token)
        wait = self._windows.take((token, bot.limits), ((*token, chat.id), chat.limits))
        if wait:
            raise RateLimited(wait)


def _refuse_absent(chat: Chat) -> None:
    match chat.state:
        case "kicked":
            raise named("bot_was_kicked", chat=chat.type)
        case "not_member":
            raise named("bot_is_not_a_member", chat=chat.type)
        case "blocked":
            raise named("bot_was_blocked")
        case "ok" | "no_rights" | "not_found":
            return


def _refuse_without_rights(chat: Chat) -> None:
    if chat.state == "no_rights":
        raise _no_rights(chat)


def _no_rights(chat: Chat) -> Refused:
    return named("need_administrator_rights" if chat.type == "channel" else "not_enough_rights")


def _reply_to(chat: Chat, params: Params) -> dict[str, Any]:
    target, tolerant = _reply_target(params)
    if target is None:
        return {}
    answered = chat.posts.get(target)
    if answered is not None:
        shown = shapes.message(chat, answered)
        shown.pop("reply_to_message", None)  # Telegram shows one step back, never the whole chain
        return {"reply_to_message": shown}
    if tolerant:
        return {}
    raise named("message_to_be_replied_not_found")


def _reply_target(params: Params) -> tuple[int | None, bool]:
    reply = _object(params, "reply_parameters")
    if reply is None:
        return params.integer("reply_to_message_id"), params.flag("allow_sending_without_reply")
    target = reply.get("message_id")
    return target if isinstance(target, int) else None, bool(reply.get("allow_sending_without_reply"))


def _link_preview(params: Params) -> dict[str, Any]:
    options = _object(params, "link_preview_options")
    if options is None and params.flag("disable_web_page_preview"):
        options = {"is_disabled": True}
    return {"link_preview_options": options} if options else {}


def _object(params: Params, name: str) -> dict[str, Any] | None:
    try:
        value = params.structure(name)
    except msgspec.DecodeError:
        value = ""
    if value is None or isinstance(value, dict):
        return value
    raise Refused(400, f"Bad Request: can't parse {name.replace('_', ' ')} JSON object")
