"""The text of a message, or the caption of its media: parsed by its parse mode, then measured."""

from typing import Any

import msgspec

from autopost_simulator.telegram.markup.formatting import Entity, Formatted, ParseError, Parser, finish
from autopost_simulator.telegram.markup.parse_html import parse_html
from autopost_simulator.telegram.markup.parse_markdown import parse_markdown
from autopost_simulator.telegram.markup.parse_markdown_v2 import parse_markdown_v2
from autopost_simulator.telegram.params import Params
from autopost_simulator.telegram.refusal import named

RAW_BYTES = 32_768
TEXT_LENGTH = 4_096
CAPTION_LENGTH = 1_024

_PARSERS: dict[str, Parser] = {"html": parse_html, "markdown": parse_markdown, "markdownv2": parse_markdown_v2}


def message_text(params: Params, *, too_long: str = "message_is_too_long") -> Formatted:
    """Lengths are measured after parsing, in code points."""
    formatted = _formatted(params, "text", "entities")
    if not formatted.text:
        raise named("message_text_is_empty")
    if len(formatted.text) > TEXT_LENGTH:
        raise named(too_long)
    return formatted


def caption(params: Params) -> Formatted:
    """A caption may be empty. For an album, ``params`` are those of the item."""
    return _formatted(params, "caption", "caption_entities")


def refuse_long_caption(written: Formatted) -> None:
    if len(written.text) > CAPTION_LENGTH:
        raise named("message_caption_is_too_long")


def _formatted(params: Params, name: str, entities: str) -> Formatted:
    raw = params.text(name)
    if not raw:
        return Formatted("", [])
    if len(raw.encode(errors="surrogatepass")) > RAW_BYTES:
        raise named("text_is_too_long")
    mode = params.text("parse_mode").lower()
    if mode in ("", "none"):
        return finish(Formatted(raw, _given(params, entities)))
    if mode not in _PARSERS:
        raise named("unsupported_parse_mode")
    try:
        return finish(_PARSERS[mode](raw))
    except ParseError as reason:
        raise named("cant_parse_entities", reason=str(reason)) from None


def _given(params: Params, name: str) -> list[Entity]:
    """Entities given by the caller."""
    try:
        given: Any = params.structure(name) or []
        return [_checked(entity) for entity in msgspec.convert(given, list[dict[str, Any]])]
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise named("cant_parse_entities", reason="expected an array of MessageEntity") from None


def _checked(entity: dict[str, Any]) -> Entity:
    msgspec.convert(entity, _MessageEntity)
    return entity


class _MessageEntity(msgspec.Struct):
    type: str
    offset: int
    length: int
