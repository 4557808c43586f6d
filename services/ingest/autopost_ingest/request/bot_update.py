"""Parse an update of MAX for the inbox: chat id, key, kind and a body that the database can store.

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
ANSWERED = frozenset({"message_created", "message_callback", "bot_started"})
"""Kinds that the bot answers; all others are only stored."""


class BotUpdate(Struct, frozen=True, kw_only=True):
    kind: str
    chat_id: str
    key: str
    body: dict[str, Any] | Raw

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
        return BotUpdate(kind=kind, chat_id=_short(_chat(update)), key=_short(_key(kind, update)), body=update)
    except (ValueError, RecursionError) as exc:
        raise InvalidUpdate(f"the body is not valid JSON: {type(exc).__name__}") from None


def _key(kind: str, update: dict[str, Any]) -> str:
    """The same for every delivery of the update, and unique among the updates of the chat."""
    match kind:
        case "message_created" if mid := _string(_at(update, "message", "body", "mid")):
            return mid
        case "message_callback" if callback := _string(_at(update, "callback", "callback_id")):
            return f"cb:{callback}"
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


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _string(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _short(text: str) -> str:
    """Short enough for an index; a longer text is replaced by its hash."""
    return text if len(text) <= LONGEST_KEY else f"sha256:{sha256(text.encode()).hexdigest()}"
