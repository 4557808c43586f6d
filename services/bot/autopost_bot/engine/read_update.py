"""Read an update of MAX from the inbox. Whatever a provider sends is read; what is missing is empty."""

from datetime import datetime
from typing import Any, Literal

from autopost_bot.engine.turn import Update

KINDS: dict[str, Literal["message", "press", "start"]] = {
    "message_created": "message",
    "message_callback": "press",
    "bot_started": "start",
}
LONGEST_TEXT = 4000


def read_update(
    key: str, kind: str, body: Any, at: datetime, provider_ms: int | None, *, flooded: bool = False
) -> Update:
    """Of a row of ``bot_inbox``: its key, kind, update, ts and provider_ts."""
    text = _string(_at(body, "message", "body", "text")) or _string(_at(body, "message", "link", "message", "text"))
    callback_id = _string(_at(body, "callback", "callback_id"))
    is_press = kind == "message_callback"
    return Update(
        key=key,
        kind=KINDS.get(kind, "message"),
        at=at,
        provider_ms=provider_ms,
        text="" if is_press else text[:LONGEST_TEXT],
        attachments=() if is_press else _attachments(body),
        payload=_string(_at(body, "callback", "payload")) if is_press else "",
        callback_id=callback_id or None if is_press else None,
        flooded=flooded,
    )


def _attachments(body: Any) -> tuple[str, ...]:
    """Their types, without the keyboard, which a customer cannot attach."""
    found = _at(body, "message", "body", "attachments") or _at(body, "message", "link", "message", "attachments")
    kinds = (_string(_at(one, "type")) or "unknown" for one in found) if isinstance(found, list) else ()
    return tuple(kind for kind in kinds if kind != "inline_keyboard")


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
