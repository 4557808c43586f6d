"""Bots, chats and messages in the form of the MAX API. Empty values are omitted, as in MAX.

A MAX post keeps the fields that only MAX has in ``extra``: ``attachments``, the media in the form of the
API (``type``, ``payload`` with ``url`` and ``token``); ``link``, the message replied to or forwarded;
``sender``, the person who wrote it, absent if the bot did. The keyboard is in ``buttons``.
"""

import base64
import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from autopost_simulator.world import Bot, Chat, ChatPost

PERMISSIONS = [
    "read_all_messages",
    "write",
    "edit",
    "delete",
    "pin_message",
    "change_chat_info",
    "add_remove_members",
    "edit_link",
    "view_stats",
]
_STATUS = {"kicked": "removed", "not_member": "left", "blocked": "removed"}


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def user(bot: Bot, now: datetime) -> dict[str, Any]:
    return {
        "user_id": bot.id,
        "first_name": bot.name,
        "username": bot.username,
        "is_bot": True,
        "last_activity_time": milliseconds(now),
        "name": bot.name,
    }


def chat(shown: Chat, now: datetime) -> dict[str, Any]:
    last = next(reversed(shown.posts.values()), None)
    shape: dict[str, Any] = {
        "chat_id": shown.id,
        "type": shown.type,
        "status": _STATUS.get(shown.state, "active"),
        "last_event_time": milliseconds(last.at if last else now),
        "participants_count": 2,
        "is_public": shown.username is not None,
        "messages_count": len(shown.posts),
    }
    if shown.type == "dialog":
        return shape | {"dialog_with_user": _person(shown, now)}
    return shape | {"title": shown.title, "link": link(shown)}


def link(shown: Chat) -> str:
    return f"https://max.ru/{shown.username}" if shown.username else f"https://max.ru/c/{shown.id}"


def membership(bot: Bot, shown: Chat, now: datetime) -> dict[str, Any]:
    admin = shown.state == "ok" and shown.type != "dialog"
    shape = user(bot, now) | {
        "last_access_time": milliseconds(now),
        "join_time": milliseconds(now),
        "is_owner": False,
        "is_admin": admin,
    }
    return shape | {"permissions": PERMISSIONS} if admin else shape


def mid(chat_id: int, seq: int) -> str:
    """Contains the chat and the position in it, as the ids of MAX do."""
    return f"mid.{chat_id % (1 << 64):016x}{seq:016x}"


def place_of(message_id: str) -> tuple[int, int] | None:
    digits = message_id.removeprefix("mid.")
    if len(digits) != 32 or digits == message_id:
        return None
    try:
        chat_id, seq = int(digits[:16], 16), int(digits[16:], 16)
    except ValueError:
        return None
    return (chat_id - (1 << 64) if chat_id >> 63 else chat_id), seq


def message(where: Chat, post: ChatPost) -> dict[str, Any]:
    """In a dialog the recipient is the other person."""
    recipient: dict[str, Any] = {"chat_id": where.id, "chat_type": where.type}
    if where.user_id is not None:
        recipient["user_id"] = post.bot.id if "sender" in post.extra else where.user_id
    shape: dict[str, Any] = {"recipient": recipient, "timestamp": milliseconds(post.at), "body": body(where, post)}
    if where.type == "channel":
        shape["url"] = f"{link(where)}/{post.id:x}"
    else:
        shape["sender"] = sender(post)
    return shape | ({"link": post.extra["link"]} if "link" in post.extra else {})


def message_read(where: Chat, post: ChatPost) -> dict[str, Any]:
    """Views are counted for channel posts, and shown only when a message is read."""
    return message(where, post) | ({"stat": {"views": 1}} if where.type == "channel" else {})


def body(where: Chat, post: ChatPost) -> dict[str, Any]:
    shape: dict[str, Any] = {"mid": mid(where.id, post.id), "seq": post.id}
    if post.text:
        shape["text"] = post.text
    keyboards = [{"callback_id": callback_id(where, post)} | keyboard for keyboard in post.buttons]
    if attachments := keyboards + post.extra.get("attachments", []):
        shape["attachments"] = attachments
    if post.markup:
        shape["markup"] = post.markup
    return shape


def callback_id(where: Chat, post: ChatPost) -> str:
    """Of the keyboard, not of a press: the same for all of its buttons and everybody, as long as it does not change."""
    identity = f"{where.id}:{post.id}:".encode() + msgspec.json.encode(post.buttons)
    return base64.urlsafe_b64encode(hashlib.sha384(identity).digest()).decode()


def linked(how: str, where: Chat, post: ChatPost) -> dict[str, Any]:
    """A forwarded message loses its buttons."""
    shown = replace(post, buttons=[]) if how == "forward" else post
    shape = {"type": how, "chat_id": where.id, "message": body(where, shown)}
    return shape if where.type == "channel" else shape | {"sender": sender(post)}


def sender(post: ChatPost) -> dict[str, Any]:
    found: dict[str, Any] = post.extra.get("sender") or user(post.bot, post.at)
    return found


def written_by(post: ChatPost, bot: Bot) -> bool:
    return "sender" not in post.extra and post.bot is bot


def _person(shown: Chat, now: datetime) -> dict[str, Any]:
    return {
        "user_id": shown.user_id,
        "first_name": shown.title,
        "is_bot": False,
        "last_activity_time": milliseconds(now),
        "name": shown.title,
    }
