"""Parse an update of MAX for the inbox: chat, person, key, kind, time and a body that the database can store.

MAX unsubscribes a webhook that fails for hours, so no message of a customer may make it fail: any JSON is stored, and
characters that the database cannot hold are replaced.
"""

import json
from hashlib import sha256
from typing import Any

from autopost_runtime.http import lenient_json
from msgspec import Raw, Struct

PROVIDER = "max"
LONGEST_KEY = 200
LONGEST_SEQ = 20
MOST_TIME = 2**53
"""Milliseconds; a later time is none."""
ANSWERED = frozenset({"message_created", "message_callback", "bot_started"})
"""Kinds that the bot answers; all others are only stored."""


class BotUpdate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: str
    chat_id: str
    """``user:`` and the number of the person where no chat is named: a press on a button whose message is gone."""
    key: str
    body: dict[str, Any] | Raw
    user_id: str | None = None
    """Who wrote or pressed."""
    is_bot: bool = False
    """Another bot did."""
    chat_type: str | None = None
    provider_ts: int | None = None
    """When it happened, in milliseconds."""
    provider_seq: str | None = None
    """The place of a message among those of its chat; larger than JSON numbers can be."""

    @property
    def answer(self) -> bool:
        return self.kind in ANSWERED


class InvalidUpdate(Exception):  # noqa: N818  named for what happened
    """The body is not an update; the message is shown to the sender."""


def read_update(body: bytes) -> BotUpdate:
    """Raises ``InvalidUpdate``."""
    try:
        update = lenient_json.read(body)
        if not isinstance(update, dict):
            raise InvalidUpdate("the body must be a JSON object")
        kind = _short(_string(update.get("update_type")) or "unknown")
        person = _person(kind, update)
        return BotUpdate(
            kind=kind,
            chat_id=_short(_chat(update)),
            key=_short(_key(kind, update)),
            body=update,
            user_id=_short(_string(_at(person, "user_id")) or _string(update.get("user_id"))) or None,
            is_bot=_at(person, "is_bot") is True,
            chat_type=_chat_type(kind, update),
            provider_ts=_time(kind, update),
            provider_seq=_seq(kind, update),
        )
    except (ValueError, RecursionError) as exc:
        raise InvalidUpdate(f"the body is not valid JSON: {type(exc).__name__}") from None


def _key(kind: str, update: dict[str, Any]) -> str:
    """The same for every delivery of the update, and unique among the updates of the chat."""
    match kind:
        case "message_created" if mid := _string(_at(update, "message", "body", "mid")):
            return mid
        case "message_callback" if callback := _string(_at(update, "callback", "callback_id")):
            return f"cb:{callback}:{_string(_at(update, 'callback', 'timestamp'))}"  # the id is that of the keyboard
        case "bot_started" if when := _string(update.get("timestamp")):
            return f"start:{_chat(update)}:{when}"
        case _:
            return f"{kind}:{sha256(json.dumps(update, sort_keys=True).encode()).hexdigest()}"


def _chat(update: dict[str, Any]) -> str:
    """The chat to answer in; a dialog without a chat id uses the user id."""
    chat = _string(update.get("chat_id")) or _string(_at(update, "message", "recipient", "chat_id"))
    if chat:
        return chat
    people = (
        _at(update, "callback", "user", "user_id"),
        _at(update, "message", "sender", "user_id"),
        update.get("user_id"),
    )
    person = next(filter(None, map(_string, people)), "")
    return f"user:{person}" if person else ""


def _person(kind: str, update: dict[str, Any]) -> Any:
    match kind:
        case "message_callback":
            return _at(update, "callback", "user")
        case "bot_started" | "bot_stopped":
            return update.get("user")
        case _:
            return _at(update, "message", "sender")


def _chat_type(kind: str, update: dict[str, Any]) -> str | None:
    """Only a dialog can be started or stopped."""
    if kind in ("bot_started", "bot_stopped"):
        return "dialog"
    return _short(_string(_at(update, "message", "recipient", "chat_type"))) or None


def _time(kind: str, update: dict[str, Any]) -> int | None:
    """A press is later than its message."""
    place = {"message_created": "message", "message_callback": "callback"}.get(kind, "")
    times = (_at(update, place, "timestamp"), update.get("timestamp"))
    return next((at for at in times if type(at) is int and 0 <= at <= MOST_TIME), None)


def _seq(kind: str, update: dict[str, Any]) -> str | None:
    seq = _string(_at(update, "message", "body", "seq")) if kind == "message_created" else ""
    return seq if seq.isascii() and seq.isdigit() and len(seq) <= LONGEST_SEQ else None


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _string(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _short(text: str) -> str:
    """Short enough for an index; a longer text is replaced by its hash."""
    return text if len(text) <= LONGEST_KEY else f"sha256:{sha256(text.encode()).hexdigest()}"
