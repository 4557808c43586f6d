"""Options of a message: reply, topic, preview, protection."""

from typing import Any

import msgspec

from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.place import topic
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.world import Chat

_OF_ADDRESS = ("url", "prefer_small_media", "prefer_large_media")
_PREVIEW = ("is_disabled", "url", "prefer_small_media", "prefer_large_media", "show_above_text")


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
    """The size of the media is ignored without ``url``, and ``url`` where the preview is disabled."""
    options = _object(params, "link_preview_options", "link preview options")
    if options is None:
        options = {"is_disabled": params.flag("disable_web_page_preview")}
    if options.get("is_disabled") or not options.get("url"):
        options = {name: value for name, value in options.items() if name not in _OF_ADDRESS}
    kept = {name: value for name, value in options.items() if name in _PREVIEW and value}
    return {"link_preview_options": kept} if kept else {}


def has_address(preview: dict[str, Any]) -> bool:
    return "url" in preview.get("link_preview_options", {})


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
    reply = _object(params, "reply_parameters", "reply parameters")
    if reply is None:
        return params.integer("reply_to_message_id"), params.flag("allow_sending_without_reply")
    target = reply.get("message_id")
    return target if isinstance(target, int) else None, bool(reply.get("allow_sending_without_reply"))


def _object(params: Params, name: str, called: str) -> dict[str, Any] | None:
    try:
        value = params.structure(name)
    except msgspec.DecodeError:
        raise TelegramError(400, f"Bad Request: can't parse {called} JSON object") from None
    if value is None or isinstance(value, dict):
        return value
    raise TelegramError(400, f"Bad Request: object expected as {called}")
