"""The old Markdown: four marks, no nesting, no escapes inside an entity."""

import re

from autopost_simulator.telegram.markup.formatting import EntityBuilder, Formatted, ParseError, byte_offset

_MARKS = "_*`["
_LANGUAGE = re.compile(r"([^\s`]+)(?=\s)")


def parse_markdown(text: str) -> Formatted:
    out = EntityBuilder()
    at = 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] and text[at + 1] in _MARKS:
            out.add(text[at + 1])
            at += 2
        elif text[at] in _MARKS:
            at = _entity(text, at, out)
        else:
            out.add(text[at])
            at += 1
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
    start = language.end() if language else start
    if text[start : start + 1] == "\n":
        start += 1
    end = _find(text, "```", start, begin)
    place = out.mark()
    out.add(text[start:end])
    out.entity("pre", place, **({"language": language[1]} if language else {}))
    return end + 3


def _link(text: str, after: int, place: tuple[int, int], out: EntityBuilder) -> int:
    if text[after : after + 1] != "(":
        out.link(place, "")
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
