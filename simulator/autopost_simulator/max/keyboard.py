"""Inline keyboards of MAX: kinds of buttons and their limits."""

from typing import Any

from autopost_simulator.max.refusal import named, payload

ROWS = 30
BUTTONS = 210
IN_ROW = 7
WIDE_IN_ROW = 3

_WIDE = ("link", "open_app", "request_geo_location", "request_contact")
_FIELDS: dict[str, tuple[tuple[str, int], ...]] = {
    "callback": (("payload", 1024),),
    "link": (("url", 2048),),
    "request_contact": (),
    "request_geo_location": (),
    "open_app": (),
    "message": (),
    "clipboard": (("payload", 1024),),
}

_INTENTS = ("positive", "negative", "default")

Button = dict[str, Any]


def keyboard(attachment: dict[str, Any]) -> dict[str, Any]:
    content = attachment.get("payload")
    rows = content.get("buttons") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and row for row in rows):
        raise payload("Missing `buttons` in inline_keyboard attachment")
    if len(rows) > ROWS or sum(map(len, rows)) > BUTTONS:
        raise payload(f"buttons: at most {ROWS} rows and {BUTTONS} buttons are allowed")
    return {"type": "inline_keyboard", "payload": {"buttons": [_row(row) for row in rows]}}


def _row(row: list[object]) -> list[Button]:
    buttons = [_button(button) for button in row]
    most = WIDE_IN_ROW if any(button["type"] in _WIDE for button in buttons) else IN_ROW
    if len(buttons) > most:
        raise payload(f"buttons: at most {most} buttons are allowed in this row")
    return buttons


def _button(button: object) -> Button:
    if not isinstance(button, dict) or button.get("type") not in _FIELDS:
        raise payload("Unknown button type")
    text = button.get("text")
    if not isinstance(text, str) or not 1 <= len(text) <= 128:
        raise payload("text: size must be between 1 and 128")
    for name, longest in _FIELDS[button["type"]]:
        value = button.get(name)
        if not isinstance(value, str) or not 1 <= len(value) <= longest:
            raise payload(f"{name}: size must be between 1 and {longest}")
    if button["type"] == "open_app" and button.get("web_app") is None:
        raise named("web_app_null")
    if button["type"] == "callback" and button.get("intent", "default") not in _INTENTS:
        raise payload("intent: must be one of positive, negative and default")
    return {"intent": "default"} | button if button["type"] == "callback" else button
