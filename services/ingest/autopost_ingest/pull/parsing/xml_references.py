"""Resolve references in XML before the parser does, so that no document can grow by entity expansion.

Feeds contain HTML entity names and bare ampersands, which XML does not allow; both are replaced by valid references.
"""

import html
import re
import sys
import unicodedata
from collections.abc import Iterator
from html.entities import html5

from autopost_ingest.pull.parsing.encoding import shortened

MOST_ENTITIES = 300

_ENTITY = re.compile(r"<!ENTITY", re.IGNORECASE)
# Old feeds declare short entities for a dash, a space or a name.
_HARMLESS = re.compile(r"<!ENTITY\s+(\w+)\s+[\"']((?:&#\w{1,8};|[^\"'&%<]){0,16})[\"']\s*>")
_REFERENCE = re.compile(
    r"&(?:(?P<known>#\d{1,7};|#[xX][0-9a-fA-F]{1,6};|(?:amp|lt|gt|quot|apos);)|(?P<name>\w{1,31});)?"
)


class InvalidDocument(Exception):  # noqa: N818  named for what happened
    """The document is invalid or refused; the message says why."""


def plain_references(text: str) -> str:
    """Raises ``InvalidDocument`` for nested, external or long entity declarations."""
    if not _ENTITY.search(text):
        return _replaced(text, {})
    own = _HARMLESS.findall(text)
    rest = _HARMLESS.sub("", text)
    if _ENTITY.search(rest) or len(own) > MOST_ENTITIES:
        raise InvalidDocument("XML entity declarations are not allowed")
    return _replaced(rest, {name: html.unescape(value) for name, value in own})


def _replaced(text: str, own: dict[str, str]) -> str:
    def plain(found: re.Match[str]) -> str:
        if found["known"]:
            return _mark(found["known"]) or found[0]
        name = found["name"]
        if not name:
            return "&amp;"
        meant = own.get(name) or html5.get(f"{name};")
        return f"&amp;{name};" if meant is None else html.escape(meant)

    return shortened("".join(literal or _REFERENCE.sub(plain, piece) for piece, literal in _pieces(text)))


def _mark(known: str) -> str | None:
    """Decode a reference to a combining mark, so that too many marks in a row are detected."""
    if not known.startswith("#"):
        return None
    number = int(known[2:-1], 16) if known[1] in "xX" else int(known[1:-1])
    return chr(number) if number <= sys.maxunicode and unicodedata.combining(chr(number)) else None


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of text that may have references, and literal text (CDATA); one of both is empty."""
    place = 0
    while (opens := text.find("<![CDATA[", place)) >= 0 and (closes := text.find("]]>", opens)) >= 0:
        yield text[place:opens], ""
        place = closes + 3
        yield "", text[opens:place]
    yield text[place:], ""
