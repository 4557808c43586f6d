"""The old Markdown: four marks, no nesting, no escapes inside an entity."""

import re

from autopost_simulator.telegram.markup.formatting import EntityBuilder, Formatted, ParseError, byte_offset
from autopost_simulator.telegram.markup.parse_markdown_v2 import skip_line_break

_MARKS = "_*`["
_PLAIN = re.compile(r"[^\\_*`\[]+")
_LANGUAGE = re.compile(r"([^ \t\r\n\0\v`]+)(?=[ \t\r\n\0\v])")


def parse_markdown(text: str) -> Formatted:
    out = EntityBuilder()
    at = 0
    while at < len(text):
        if plain := _PLAIN.match(text, at):
            out.add(plain[0])
            at = plain.end()
        elif text[at] == "\\":
            escaped = text[at + 1 : at + 2] and text[at + 1] in _MARKS
            out.add(text[at + 1] if escaped else "\\")
            at += 2 if escaped else 1
        else:
            at = _entity(text, at, out)
    return out.formatted()


def _entity(text: str, begin: int, out: EntityBuilder) -> int:
    """Parse one entity and return the position after it."""
    if text.startswith("```", begin):
        return _pre(text, begin, out)
    mark = text[begin]
    end = _find(text, "]" if mark == "[" else mark, begin + 1, begin)
    place = out.mark()
    out.add(text[begin + 1 : end])
    if mark == "[":
        return _link(text, end + 1, place, out)
    out.entity({"_": "italic", "*": "bold", "`": "code"}[mark], place)
    return end + 1


def _pre(text: str, begin: int, out: EntityBuilder) -> int:
    start = begin + 3
    language = _LANGUAGE.match(text, start)
    start = skip_line_break(text, language.end() if language else start)
    end = _find(text, "```", start, begin)
    place = out.mark()
    out.add(text[start:end])
    out.entity("pre", place, **({"language": language[1]} if language else {}))
    return end + 3


def _link(text: str, after: int, place: tuple[int, int], out: EntityBuilder) -> int:
    """Without a text there is no link, and what follows in brackets is text."""
    if place[0] == out.length:
        return after
    if text[after : after + 1] != "(":
        out.link(place, None)
        return after
    end = text.find(")", after)
    end = len(text) if end < 0 else end
    out.link(place, text[after + 1 : end])
    return end + 1


def _find(text: str, what: str, start: int, begin: int) -> int:
    end = text.find(what, start)
    if end < 0:
        raise ParseError(f"Can't find end of the entity starting at byte offset {byte_offset(text, begin)}")
    return end
