"""The body of ``POST /messages``: parsed, validated and converted."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from autopost_simulator.max.attachments import Attached
from autopost_simulator.max.refusal import named, payload
from autopost_simulator.max.text.markdown import parse_markdown
from autopost_simulator.max.text.markup import Markup, parse_html, utf16_length

TEXT_LENGTH = 4_000


class MessageLink(msgspec.Struct, frozen=True):
    type: Literal["reply", "forward"]
    mid: str


class NewMessageBody(msgspec.Struct, frozen=True):
    text: str | None = None
    attachments: list[dict[str, Any]] | None = None
    link: MessageLink | None = None
    notify: bool | None = None
    format: Literal["markdown", "html"] | None = None


@dataclass(slots=True, frozen=True)
class Text:
    text: str
    markup: list[Markup]


def decode(raw: bytes) -> NewMessageBody:
    try:
        return msgspec.json.decode(raw or b"{}", type=NewMessageBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise payload(str(error)) from None


def formatted(body: NewMessageBody) -> Text:
    given = body.text or ""
    if utf16_length(given) > TEXT_LENGTH:
        raise named("text_too_long")
    if body.format is None:
        return Text(given, [])
    parsed = parse_html(given) if body.format == "html" else parse_markdown(given)
    return Text(parsed.text, sorted(parsed.markup, key=lambda element: (element["from"], -element["length"])))


def refuse_empty(text: str, attached: Attached, *, linked: bool) -> None:
    if not text.strip() and not attached.shown and not attached.keyboard and not linked:
        raise payload("Message must have text or attachments")
