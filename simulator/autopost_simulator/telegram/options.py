"""Options of a message: reply, topic, preview, protection."""

from typing import Any

import msgspec

from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.params import Params
from autopost_simulator.telegram.place import topic
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.world import Chat


def common_options(chat: Chat, params: Params) -> dict[str, Any]:
    """Fields that any message can have; disable_notification is not among them."""
    extra = _reply_to(chat, params)
    thread = topic(chat, params)
    if thread is not None:
        extra |= {"message_thread_id": thread, "is_topic_message": True}
    if params.flag("protect_content"):
        extra["has_protected_content"] = True
    return extra


def link_preview(params: Params) -> dict[str, Any]:
    options = _object(params, "link_preview_options")
    if options is None and params.flag("disable_web_page_preview"):
        options = {"is_disabled": True}
    return {"link_preview_options": options} if options else {}


def _reply_to(chat: Chat, params: Params) -> dict[str, Any]:
    target, tolerant = _reply_target(params)
    if target is None:
        return {}
    answered = chat.posts.get(target)
    if answered is not None:
        shown = shapes.message(chat, answered)
        shown.pop("reply_to_message", None)  # Telegram shows one level of replies only
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


def _object(params: Params, name: str) -> dict[str, Any] | None:
    try:
        value = params.structure(name)
    except msgspec.DecodeError:
        value = ""
    if value is None or isinstance(value, dict):
        return value
    raise TelegramError(400, f"Bad Request: can't parse {name.replace('_', ' ')} JSON object")
