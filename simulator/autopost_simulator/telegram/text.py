"""The text of a message, or the caption of its media: parsed by its parse mode, then measured."""

from typing import Any

import msgspec

from autopost_simulator.telegram.markup.finish import TextError, finish
from autopost_simulator.telegram.markup.formatting import Entity, Formatted, ParseError, Parser
from autopost_simulator.telegram.markup.given_entities import UnusableEntity, read_entity
from autopost_simulator.telegram.markup.parse_html import parse_html
from autopost_simulator.telegram.markup.parse_markdown import parse_markdown
from autopost_simulator.telegram.markup.parse_markdown_v2 import parse_markdown_v2
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.request.params import Params

RAW_BYTES = 32_768
TEXT_LENGTH = 4_096
CAPTION_LENGTH = 1_024

_PARSERS: dict[str, Parser] = {"html": parse_html, "markdown": parse_markdown, "markdownv2": parse_markdown_v2}


def raw_text(params: Params) -> Formatted:
    """Parsed but not measured: Telegram looks for the chat in between."""
    if not params.text("text"):
        raise named("message_text_is_empty")
    return _formatted(params, "text", "entities")


def message_text(raw: Formatted, *, may_be_empty: bool = False, too_long: str = "message_is_too_long") -> Formatted:
    """Lengths are measured after parsing, in code points. With the address of a preview the text may be empty."""
    formatted = finished(raw, may_be_empty=may_be_empty)
    if len(formatted.text) > TEXT_LENGTH:
        raise named(too_long)
    return formatted


def caption(params: Params) -> Formatted:
    """A caption may be empty. For an album, ``params`` are those of the item."""
    return finished(_formatted(params, "caption", "caption_entities"), may_be_empty=True)


def refuse_long_caption(written: Formatted) -> None:
    if len(written.text) > CAPTION_LENGTH:
        raise named("message_caption_is_too_long")


def finished(raw: Formatted, *, may_be_empty: bool) -> Formatted:
    try:
        return finish(raw, may_be_empty=may_be_empty)
    except TextError as reason:
        raise TelegramError(400, f"Bad Request: {reason}") from None


def _formatted(params: Params, name: str, entities: str) -> Formatted:
    raw = params.text(name)
    if not raw:
        return Formatted("", [])
    if len(raw.encode(errors="surrogatepass")) > RAW_BYTES:
        raise named("text_is_too_long")
    mode = params.text("parse_mode").lower()
    if mode in ("", "none"):
        return Formatted(raw, _given(params, entities))
    if mode not in _PARSERS:
        raise named("unsupported_parse_mode")
    try:
        return _PARSERS[mode](raw)
    except ParseError as reason:
        raise named("cant_parse_entities", reason=str(reason)) from None


def _given(params: Params, name: str) -> list[Entity]:
    """Entities given by the caller; what is no array is ignored."""
    try:
        given: Any = params.structure(name)
    except msgspec.DecodeError:
        return []
    try:
        read = [read_entity(entity) for entity in given] if isinstance(given, list) else []
    except UnusableEntity as reason:
        raise named("cant_parse_message_entity", reason=str(reason)) from None
    except TextError as reason:
        raise TelegramError(400, f"Bad Request: {reason}") from None
    return [entity for entity in read if entity is not None]
