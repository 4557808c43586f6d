"""From parsed or given entities to those of the message: cleaned, trimmed, found in the text and resolved."""

from collections.abc import Sequence

from autopost_simulator.telegram.markup.automatic import HIDDEN, find_entities
from autopost_simulator.telegram.markup.cleaning import clean, is_invisible, trim
from autopost_simulator.telegram.markup.formatting import Entity, Formatted, byte_offset, utf16_length
from autopost_simulator.telegram.markup.nesting import merge, resolve
from autopost_simulator.telegram.markup.span import Span, in_order

_FURTHEST = 1_000_000


class TextError(Exception):
    """The whole description after ``Bad Request:``."""


def finish(formatted: Formatted, *, may_be_empty: bool = False) -> Formatted:
    spans = resolve(_spans(formatted))
    text = clean(formatted.text, spans)
    spans = [span for span in spans if span.begin < span.end]
    if not text.strip(" \n"):
        return _empty(may_be_empty=may_be_empty)
    spans = resolve(spans)
    text = trim(text, spans)
    if is_invisible(text) and not may_be_empty:
        raise TextError("text must be non-empty")
    return Formatted(text, _entities(text, merge(in_order(spans), find_entities(text))))


def _empty(*, may_be_empty: bool) -> Formatted:
    if not may_be_empty:
        raise TextError("text must be non-empty")
    return Formatted("", [])


def _spans(formatted: Formatted) -> list[Span]:
    """From UTF-16 units to code points."""
    given = [entity for entity in formatted.entities if _has_length(entity)]
    if not given:
        return []
    positions = _positions(formatted.text)
    return [_span(formatted.text, entity, positions) for entity in sorted(given, key=lambda one: int(one["offset"]))]


def _has_length(entity: Entity) -> bool:
    for name in ("offset", "length"):
        if not 0 <= entity[name] <= _FURTHEST:
            raise TextError(f"receive an entity with incorrect {name} {entity[name]}")
    return bool(entity["length"])


def _positions(text: str) -> Sequence[int]:
    """The code point at a UTF-16 offset; -1 in the middle of one."""
    if text.isascii():
        return range(len(text) + 1)
    positions = []
    for index, character in enumerate(text):
        positions += [index] if character <= "\uffff" else [index, -1]
    return [*positions, len(text)]


def _span(text: str, entity: Entity, positions: Sequence[int]) -> Span:
    begin, end = entity["offset"], entity["offset"] + entity["length"]
    if begin >= len(positions):
        raise TextError(f"entity begins after the end of the text at UTF-16 offset {begin}")
    if end >= len(positions):
        raise TextError(
            f"entity beginning at UTF-16 offset {begin} ends after the end of the text at UTF-16 offset {end}"
        )
    if positions[begin] < 0:
        where = byte_offset(text, positions[begin + 1])
        raise TextError(f"entity begins in a middle of a UTF-16 symbol at byte offset {where}")
    if positions[end] < 0:
        where = byte_offset(text, positions[end + 1])
        raise TextError(
            f"entity beginning at UTF-16 offset {begin} ends in a middle of a UTF-16 symbol at byte offset {where}"
        )
    extra = {name: value for name, value in entity.items() if name not in ("type", "offset", "length")}
    return Span(entity["type"], positions[begin], positions[end], extra)


def _entities(text: str, spans: list[Span]) -> list[Entity]:
    if text.isascii():
        return [_entity(span, span.begin, span.end) for span in spans if span.kind != HIDDEN]
    return [
        _entity(span, utf16_length(text[: span.begin]), utf16_length(text[: span.end]))
        for span in spans
        if span.kind != HIDDEN
    ]


def _entity(span: Span, begin: int, end: int) -> Entity:
    return {"type": span.kind, "offset": begin, "length": end - begin, **span.extra}
