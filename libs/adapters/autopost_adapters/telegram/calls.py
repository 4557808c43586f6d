"""Build the Bot API call of a part: method, parameters, and files to upload."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from autopost_contracts.payload import Button, MediaType
from autopost_contracts.plan import Markup, MediaPart, Part, PlannedMedia, Preview, TextPart
from msgspec import Struct

from autopost_adapters.base import Material, Source

Kind = Literal["photo", "video", "animation", "audio", "document"]

KINDS: Mapping[MediaType, Kind] = {
    "image": "photo",
    "video": "video",
    "animation": "animation",
    "audio": "audio",
    "file": "document",
}
_VISIBLE: tuple[Kind, ...] = ("photo", "video", "animation")

Fields = dict[str, Any]


class TelegramCall(Struct, frozen=True):
    method: str
    fields: Fields
    files: Mapping[str, Source]


def call_for(part: Part, media: Sequence[Material]) -> TelegramCall:
    match part:
        case TextPart():
            return TelegramCall("sendMessage", _text(part), {})
        case MediaPart(media=(item,)):
            return _single(part, item, media[0])
        case MediaPart():
            return _album(part, media)


def _text(part: TextPart) -> Fields:
    fields = _text_fields("text", part.text, part.markup) | _delivery_options(part) | _keyboard(part.buttons)
    if preview := _preview(part.preview):
        fields["link_preview_options"] = preview
    return fields


def _single(part: MediaPart, item: PlannedMedia, material: Material) -> TelegramCall:
    kind = KINDS[item.type]
    fields = _media_fields(part, item, material) | _delivery_options(part) | _keyboard(part.buttons)
    method = f"send{kind.capitalize()}"
    if isinstance(material, str):
        return TelegramCall(method, fields | {kind: material}, {})
    return TelegramCall(method, fields, {kind: material})


def _album(part: MediaPart, media: Sequence[Material]) -> TelegramCall:
    """Captions and parse modes are set per item: Telegram ignores them, and buttons, on the album."""
    files = {f"file{number}": source for number, source in enumerate(media) if not isinstance(source, str)}
    items = [
        {"type": KINDS[item.type], "media": material if isinstance(material, str) else f"attach://file{number}"}
        | _media_fields(part, item, material)
        for number, (item, material) in enumerate(zip(part.media, media, strict=True))
    ]
    return TelegramCall("sendMediaGroup", {"media": items} | _delivery_options(part), files)


def _media_fields(part: MediaPart, item: PlannedMedia, material: Material) -> Fields:
    kind = KINDS[item.type]
    fields = _text_fields("caption", item.caption, item.markup) if item.caption else {}
    if part.caption_above and kind in _VISIBLE:
        fields["show_caption_above_media"] = True
    if kind == "video":
        fields["supports_streaming"] = True
    if kind == "document" and not isinstance(material, str):
        fields["disable_content_type_detection"] = True  # else Telegram may convert the file
    return fields


def _text_fields(name: str, text: str, markup: Markup) -> Fields:
    """Plans for Telegram are HTML or plain text."""
    return {name: text} | ({"parse_mode": "HTML"} if markup == "html" else {})


def _delivery_options(part: Part) -> Fields:
    fields: Fields = {}
    if part.silent:
        fields["disable_notification"] = True
    if part.protect:
        fields["protect_content"] = True
    return fields


def _keyboard(buttons: tuple[tuple[Button, ...], ...]) -> Fields:
    if not buttons:
        return {}
    rows = [[{"text": button.text, "url": button.url} for button in row] for row in buttons]
    return {"reply_markup": {"inline_keyboard": rows}}


def _preview(preview: Preview) -> Fields:
    if preview.disabled:
        return {"is_disabled": True}
    options: Fields = {}
    if preview.size and preview.url:
        options = {"url": preview.url, f"prefer_{preview.size}_media": True}
    return options | ({"show_above_text": True} if preview.above_text else {})
