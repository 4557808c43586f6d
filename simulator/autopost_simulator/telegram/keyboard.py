"""Inline keyboards: validation, and their form in the message."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from autopost_simulator.telegram.markup.formatting import normal_url
from autopost_simulator.telegram.params import Params
from autopost_simulator.telegram.refusal import named

MOST_BUTTONS = 100
LARGEST_MARKUP = 10_000  # bytes; Telegram documents no limit and refuses near this size

_ACTIONS = (
    "url",
    "callback_data",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
)


def inline_keyboard(params: Params) -> dict[str, Any] | None:
    """``None`` without buttons; other keyboards are for private chats and do not appear in the message."""
    try:
        markup = params.structure("reply_markup")
    except msgspec.DecodeError:
        raise named("cant_parse_reply_markup") from None
    if markup is None:
        return None
    if not isinstance(markup, dict):
        raise named("cant_parse_reply_markup")
    rows = markup.get("inline_keyboard")
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise named("cant_parse_reply_markup")
    if sum(map(len, rows)) > MOST_BUTTONS or len(msgspec.json.encode(rows)) > LARGEST_MARKUP:
        raise named("reply_markup_is_too_long")
    shown = [[_button(button) for button in row] for row in rows if row]
    return {"inline_keyboard": shown} if shown else None


def _button(button: object) -> dict[str, Any]:
    if not isinstance(button, dict):
        raise named("cant_parse_button", reason="InlineKeyboardButton must be an Object")
    if not isinstance(button.get("text"), str):
        raise named("cant_parse_button", reason='Can\'t find field "text"')
    if not any(action in button for action in _ACTIONS):
        raise named("cant_parse_button", reason="Text buttons are unallowed in the inline keyboard")
    if "url" in button:
        return button | {"url": _url(button["url"])}
    if "callback_data" in button and not 1 <= len(str(button["callback_data"]).encode()) <= 64:
        raise named("button_data_invalid")
    return button


def _url(url: object) -> str:
    normal = normal_url(url) if isinstance(url, str) else None
    if normal is None or urlsplit(normal).scheme.lower() not in ("http", "https", "tg", "ton"):
        raise named("button_url_invalid")
    return normal
