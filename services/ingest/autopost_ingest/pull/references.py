"""References in XML, made plain before anything expands them: a document that grows while it is read is refused.

Feeds write names of HTML, which XML does not know, and bare ampersands, which it forbids; both become what was meant.
"""

import html
import re
from html.entities import html5

MOST_ENTITIES = 300

_CDATA = re.compile(r"(<!\[CDATA\[.*?\]\]>)", re.DOTALL)
_ENTITY = re.compile(r"<!ENTITY", re.IGNORECASE)
# What old feeds declare to write a dash, a space or a name: a word at most.
_HARMLESS = re.compile(r"<!ENTITY\s+(\w+)\s+[\"']((?:&#\w{1,8};|[^\"'&%<]){0,16})[\"']\s*>")
_REFERENCE = re.compile(
    r"&(?:(?P<known>#\d{1,7};|#[xX][0-9a-fA-F]{1,6};|(?:amp|lt|gt|quot|apos);)|(?P<name>\w{1,31});)?"
)


class Unreadable(Exception):  # noqa: N818  named for what happened
    """Not what was expected, or refused; the message says why."""


def plain_references(text: str) -> str:
    """Raises ``Unreadable`` where entities are declared that refer to others, to elsewhere, or are long."""
    if not _ENTITY.search(text):
        return _replaced(text, {})
    own = _HARMLESS.findall(text)
    rest = _HARMLESS.sub("", text)
    if _ENTITY.search(rest) or len(own) > MOST_ENTITIES:
        raise Unreadable("it declares entities that grow or lead elsewhere")
    return _replaced(rest, {name: html.unescape(value) for name, value in own})


def _replaced(text: str, own: dict[str, str]) -> str:
    def plain(found: re.Match[str]) -> str:
        if found["known"]:
            return found[0]
        name = found["name"]
        if not name:
            return "&amp;"
        meant = own.get(name) or html5.get(f"{name};")
        return f"&amp;{name};" if meant is None else html.escape(meant)

    pieces = _CDATA.split(text)
    return "".join(piece if place % 2 else _REFERENCE.sub(plain, piece) for place, piece in enumerate(pieces))
