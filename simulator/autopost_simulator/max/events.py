"""Updates of a chat in the form of MAX. An update has no id: messages and callbacks have their own."""

from datetime import datetime
from typing import Any

from autopost_simulator.max import shapes
from autopost_simulator.max.people import Person
from autopost_simulator.world import Chat, ChatPost

Update = dict[str, Any]

UPDATE_TYPES = frozenset(
    (
        "message_created",
        "message_callback",
        "message_edited",
        "message_removed",
        "comment_created",
        "comment_edited",
        "comment_removed",
        "bot_added",
        "bot_removed",
        "user_added",
        "user_removed",
        "bot_started",
        "bot_stopped",
        "dialog_cleared",
        "dialog_removed",
        "dialog_muted",
        "dialog_unmuted",
        "chat_title_changed",
        "bot_admin_permissions_changed",
    )
)


def message_created(chat: Chat, post: ChatPost, person: Person, now: datetime) -> Update:
    update: Update = {"message": shapes.message(chat, post)}
    return _update("message_created", now, update | (_locale(person) if chat.type == "dialog" else {}))


def message_edited(chat: Chat, post: ChatPost, now: datetime) -> Update:
    return _update("message_edited", now, {"message": shapes.message(chat, post)})


def message_removed(chat: Chat, post: ChatPost, person: Person, now: datetime) -> Update:
    removed = {"message_id": shapes.mid(chat.id, post.id), "chat_id": chat.id, "user_id": person.user_id}
    return _update("message_removed", now, removed)


def message_callback(
    chat: Chat, post: ChatPost, person: Person, callback_id: str, payload: str, now: datetime
) -> Update:
    """``message`` is null when the message was removed."""
    callback = {
        "timestamp": shapes.milliseconds(now),
        "callback_id": callback_id,
        "user": person.shape(now),
        "payload": payload,
    }
    message = shapes.message(chat, post) if post.id in chat.posts else None
    return _update("message_callback", now, {"callback": callback, "message": message} | _locale(person))


def bot_started(chat: Chat, person: Person, payload: str | None, now: datetime) -> Update:
    update = _dialog(chat, person, now) | {"user_id": person.user_id}
    return _update("bot_started", now, update | ({} if payload is None else {"payload": payload}))


def bot_stopped(chat: Chat, person: Person, now: datetime) -> Update:
    return _update("bot_stopped", now, _dialog(chat, person, now))


def bot_added(chat: Chat, person: Person, now: datetime) -> Update:
    return _update("bot_added", now, _membership(chat, person, now))


def bot_removed(chat: Chat, person: Person, now: datetime) -> Update:
    return _update("bot_removed", now, _membership(chat, person, now))


def _update(update_type: str, now: datetime, content: Update) -> Update:
    return content | {"timestamp": shapes.milliseconds(now), "update_type": update_type}


def _dialog(chat: Chat, person: Person, now: datetime) -> Update:
    return {"chat_id": chat.id, "user": person.shape(now)} | _locale(person)


def _membership(chat: Chat, person: Person, now: datetime) -> Update:
    shape = {"chat_id": chat.id, "user": person.shape(now), "user_id": person.user_id}
    return shape | {"is_channel": chat.type == "channel"}


def _locale(person: Person) -> Update:
    return {"user_locale": person.locale}
