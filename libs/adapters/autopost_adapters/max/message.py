"""Build the body of ``POST /messages`` from a part."""

from collections.abc import Sequence
from typing import Any, Literal

from autopost_contracts.payload import Button
from autopost_contracts.plan import Markup, MediaPart, Part, PlannedMedia

from autopost_adapters.base import Material

Kind = Literal["image", "video", "audio", "file"]

PERSON = "user:"
"""Before the number of a person, where the dialog with them is not known."""


def address(chat: str) -> dict[str, str | int]:
    """The parameters that name a chat, or the person whose dialog it is."""
    return {"user_id": chat.removeprefix(PERSON)} if chat.startswith(PERSON) else {"chat_id": chat}


def kind_of(item: PlannedMedia) -> Kind:
    """MAX has no animations: a GIF is sent as an image, any other as a video."""
    if item.type != "animation":
        return item.type
    return "image" if item.content_type == "image/gif" else "video"


def written(part: Part) -> tuple[str, Markup]:
    """The text of the message and its markup."""
    if isinstance(part, MediaPart):
        return part.media[0].caption, part.media[0].markup
    return part.text, part.markup


def message_body(part: Part, media: Sequence[Material]) -> dict[str, Any]:
    """The keyboard is the last attachment. ``notify`` is sent only for silent messages, because channels reject it."""
    text, markup = written(part)
    items = part.media if isinstance(part, MediaPart) else ()
    attachments = [_attachment(item, material) for item, material in zip(items, media, strict=True)]
    if part.buttons:
        attachments.append({"type": "inline_keyboard", "payload": {"buttons": _rows(part.buttons)}})
    body: dict[str, Any] = {"text": text} if text else {}
    if text and markup != "plain":
        body["format"] = markup
    if attachments:
        body["attachments"] = attachments
    if part.silent:
        body["notify"] = False
    return body


def _attachment(item: PlannedMedia, material: Material) -> dict[str, Any]:
    if not isinstance(material, str):
        raise TypeError("media must be uploaded before the message is sent")
    payload = {"url": item.url} if item.url else {"token": material}
    return {"type": kind_of(item), "payload": payload}


def _rows(buttons: tuple[tuple[Button, ...], ...]) -> list[list[dict[str, str]]]:
    return [[button_shape(button) for button in row] for row in buttons]


def button_shape(button: Button) -> dict[str, str]:
    match button.kind:
        case "link":
            return {"type": "link", "text": button.text, "url": button.url}
        case "say":
            return {"type": "message", "text": button.text}
        case "callback":
            return {"type": "callback", "text": button.text, "payload": button.payload}
