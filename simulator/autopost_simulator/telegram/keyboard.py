"""Inline keyboards: what the server refuses and in which words, and their form in the message."""

from typing import Any

import msgspec

from autopost_simulator.telegram.markup.cleaning import clean
from autopost_simulator.telegram.markup.links import LinkError, check_link, user_of_link
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.world import Chat

MOST_BUTTONS = 100
LARGEST_MARKUP = 10_000  # bytes; Telegram documents no limit and refuses near this size
LONGEST_CALLBACK = 64
LONGEST_COPY = 256

Button = dict[str, Any]

_OBJECTS = ("switch_inline_query_chosen_chat", "login_url", "web_app", "copy_text")
_ACTIONS = ("callback_game", "pay", "switch_inline_query", "switch_inline_query_current_chat", *_OBJECTS)
_ADDRESSES = (("login_url", "login"), ("web_app", "Web App"))
_ANONYMOUS = ("switch_inline_query", "switch_inline_query_chosen_chat", "switch_inline_query_current_chat")


def inline_keyboard(params: Params) -> dict[str, Any] | None:
    """``None`` without buttons; other keyboards are for private chats and groups and do not appear in the message."""
    rows = _rows(params)
    if sum(map(len, rows)) > MOST_BUTTONS or len(msgspec.json.encode(rows)) > LARGEST_MARKUP:
        raise named("reply_markup_is_too_long")
    parsed = [[_parsed(button) for button in row] for row in rows if row]
    shown = [[_checked(button) for button in row] for row in parsed]
    return {"inline_keyboard": shown} if shown else None


def refuse_buttons_in(chat: Chat, keyboard: dict[str, Any] | None) -> None:
    """A channel does not show which bot wrote, and web apps open in private chats only."""
    for row in keyboard["inline_keyboard"] if keyboard else ():
        for button in row:
            anonymous = next((name for name in _ANONYMOUS if name in button), None)
            if chat.type == "channel" and anonymous is not None:
                name = anonymous.removesuffix("_chosen_chat")
                raise named("cant_use_button_in_channel", button=name)
            if chat.type != "private" and "web_app" in button:
                raise named("button_type_invalid")


def _rows(params: Params) -> list[list[object]]:
    try:
        markup = params.structure("reply_markup")
    except msgspec.DecodeError:
        raise named("cant_parse_reply_markup") from None
    if markup is None:
        return []
    if not isinstance(markup, dict):
        raise named("object_expected_as_reply_markup")
    rows = markup.get("inline_keyboard")
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise named("keyboard_must_be_an_array")
    if not all(isinstance(row, list) for row in rows):
        raise named("keyboard_must_be_arrays")
    return rows


def _parsed(button: object) -> Button:
    """The button with its text and the one action that the server takes."""
    if not isinstance(button, dict):
        raise _unparsable("InlineKeyboardButton must be an Object")
    if "text" not in button:
        raise _unparsable('Can\'t find field "text"')
    for name in ("text", "url", "callback_data"):
        if not isinstance(button.get(name) or "", str | int | float):
            raise _unparsable(f'Field "{name}" must be of type String')
    action = next((name for name in ("url", "callback_data") if button.get(name)), None)
    action = action or next((name for name in _ACTIONS if name in button), None)
    if action is None:
        raise _unparsable("Text buttons are unallowed in the inline keyboard")
    if action in _OBJECTS and not isinstance(button[action], dict):
        raise _unparsable(f'Field "{action}" must be of type Object')
    style = {name: button[name] for name in ("style", "icon_custom_emoji_id") if name in button}
    return {"text": str(button["text"]), action: button[action], **style}


def _checked(button: Button) -> Button:
    text = clean(button["text"], [])
    if not text:
        raise named("button_text_must_be_non_empty")
    shown = button | {"text": text}
    if "url" in shown:
        shown["url"] = _url(str(shown["url"]))
    for name, called in _ADDRESSES:
        if name in shown:
            shown[name] = shown[name] | {"url": _secure_url(str(shown[name].get("url", "")), called)}
    if "callback_data" in shown and len(str(shown["callback_data"]).encode()) > LONGEST_CALLBACK:
        raise named("button_data_invalid")
    if "copy_text" in shown and not 1 <= len(str(shown["copy_text"].get("text", ""))) <= LONGEST_COPY:
        raise named("button_copy_text_invalid")
    return shown


def _url(url: str) -> str:
    if user_of_link(url) is not None:
        return url
    try:
        return check_link(url)
    except LinkError as reason:
        raise _wrong_url("", url, reason) from None


def _secure_url(url: str, called: str) -> str:
    if user_of_link(url) is not None:
        raise named("user_link_in_button", kind=called)
    try:
        return check_link(url, https_only=True)
    except LinkError as reason:
        raise _wrong_url(f"{called} ", url, reason) from None


def _wrong_url(called: str, url: str, reason: LinkError) -> TelegramError:
    return named("button_url_is_wrong", kind=called, url=url, reason=reason)


def _unparsable(reason: str) -> TelegramError:
    return named("cant_parse_button", reason=reason)
