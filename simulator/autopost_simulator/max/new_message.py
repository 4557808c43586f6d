"""The body of ``POST /messages``: read, checked, and turned into what the chat will show."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from autopost_simulator.max.keyboard import keyboard
from autopost_simulator.max.markdown import parse_markdown
from autopost_simulator.max.markup import Markup, parse_html, utf16_length
from autopost_simulator.max.refusal import named, payload

TEXT_LENGTH = 4_000
ATTACHMENTS = 12

# Answered until uploads are imitated; there are no tokens that such an attachment could carry.
_WITHOUT_UPLOADS = ("image", "video", "audio", "file", "sticker", "contact", "share", "location")


class Link(msgspec.Struct, frozen=True):
    type: Literal["reply", "forward"]
    mid: str


class NewMessageBody(msgspec.Struct, frozen=True):
    text: str | None = None
    attachments: list[dict[str, Any]] | None = None
    link: Link | None = None
    notify: bool = True
    format: Literal["markdown", "html"] | None = None


@dataclass(slots=True, frozen=True)
class Content:
    text: str
    markup: list[Markup]
    attachments: list[dict[str, Any]]
    link: Link | None
    notify: bool


def decode(raw: bytes) -> NewMessageBody:
    try:
        return msgspec.json.decode(raw or b"{}", type=NewMessageBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise payload(str(error)) from None


def content(body: NewMessageBody) -> Content:
    if utf16_length(body.text or "") > TEXT_LENGTH:
        raise named("text_too_long")
    text, markup = _formatted(body)
    attachments = _attachments(body.attachments or [])
    if not text.strip() and not attachments and body.link is None:
        raise payload("Message must have text or attachments")
    return Content(text, markup, attachments, body.link, body.notify)


def _formatted(body: NewMessageBody) -> tuple[str, list[Markup]]:
    text = body.text or ""
    if body.format is None:
        return text, []
    parsed = parse_html(text) if body.format == "html" else parse_markdown(text)
    return parsed.text, sorted(parsed.markup, key=lambda element: (element["from"], -element["length"]))


def _attachments(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(given) > ATTACHMENTS:
        raise payload(f"attachments: size must be between 0 and {ATTACHMENTS}")
    return [_attachment(attachment) for attachment in given]


def _attachment(attachment: dict[str, Any]) -> dict[str, Any]:
    kind = attachment.get("type")
    if kind == "inline_keyboard":
        return keyboard(attachment)
    if kind in _WITHOUT_UPLOADS:
        raise payload(f"Attachment type `{kind}` is not supported by this server")
    raise payload(f"Unknown attachment type `{kind}`")
