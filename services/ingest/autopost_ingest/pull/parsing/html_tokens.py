"""Split HTML into tags and text in one pass, like browsers: an unclosed tag or comment extends to the end.

The parser of the standard library backtracks, which takes quadratic time for unclosed tags and comments.
"""

import html
import re
from collections.abc import Iterator

from msgspec import Struct

_OPENS = re.compile(r"<(?=[a-zA-Z/!?])")
_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_GAP = re.compile(r"[\s/]*")
_ATTRIBUTE = re.compile(
    r"(?P<name>=?[^\s/>=]*)(?:\s*=\s*(?:\"(?P<double>[^\"]*)(?:\"|\Z)|'(?P<single>[^']*)(?:'|\Z)|(?P<bare>[^\s>]*)))?"
)
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")


class StartTag(Struct, frozen=True):
    name: str
    attributes: dict[str, str]
    """The first value of each name."""
    is_empty: bool = False
    """Self-closing: ``<br/>``."""


class End(Struct, frozen=True):
    name: str


Token = StartTag | End | str
"""A string is text with its references decoded."""


def tokens(text: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        opens = _OPENS.search(text, place)
        if opens is None:
            yield unescape(text[place:])
            return
        if opens.start() > place:
            yield unescape(text[place : opens.start()])
        token, place = _markup(text, opens.start())
        if token is not None:
            yield token
        if isinstance(token, StartTag) and not token.is_empty and token.name in _RAW:
            ends = _RAW[token.name].search(text, place)
            place = ends.start() if ends else len(text)


def unescape(text: str) -> str:
    """A reference with too many digits is replaced without conversion, which takes quadratic time or fails."""
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text


def _markup(text: str, start: int) -> tuple[Token | None, int]:
    """The tag at ``start``, if there is one, and the position after it."""
    if text.startswith("<!--", start):
        return None, _after(text, "-->", start + 2)
    if text.startswith("<![CDATA[", start):
        return None, _after(text, "]]>", start)
    is_end = text.startswith("</", start)
    name = _NAME.match(text, start + (2 if is_end else 1))
    if name is None:  # a declaration, an instruction, or unknown
        return None, _after(text, ">", start)
    return _tag(text, name[0].lower(), name.end(), is_end=is_end)


def _after(text: str, closing: str, start: int) -> int:
    found = text.find(closing, start)
    return len(text) if found < 0 else found + len(closing)


def _tag(text: str, name: str, place: int, *, is_end: bool) -> tuple[Token | None, int]:
    attributes: dict[str, str] = {}
    while gap := _GAP.match(text, place):
        place = gap.end()
        if place == len(text):
            return None, place
        if text[place] == ">":
            is_empty = gap[0].endswith("/")
            return (End(name) if is_end else StartTag(name, attributes, is_empty)), place + 1
        found = _ATTRIBUTE.match(text, place)
        if found is None:
            break
        place = found.end()
        value = found["double"] or found["single"] or found["bare"] or ""
        attributes.setdefault(found["name"].lower(), unescape(value))
    return None, len(text)
