"""Clean the text that is shown for an action: plain text of at most 300 characters."""

import html
import re

from autopost_adapters.markup.graphemes import is_boundary

LONGEST = 300
READ = 4096
"""Characters of the given text that are read."""

_BREAKS = frozenset({"br", "p", "div", "li", "tr", "hr"})
_HIDDEN = r"<(?P<hidden>script|style)\b[^<>]*+>(?:.*?</(?P=hidden)[^<>]*+>|.*)"
_COMMENT = r"<!--(?:.*?-->|.*)|<[!?][^<>]*+>"
_TAG = r"</?(?P<tag>[a-z][^\s/<>\"']*+)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*+>"
_MARKUP = re.compile(f"{_COMMENT}|{_HIDDEN}|{_TAG}", re.DOTALL | re.IGNORECASE)
"""Takes linear time, unlike the parser of the standard library: a tag ends before the next ``<`` outside quotes, and
what is never closed reaches to the end of the text."""
_REMOVED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control characters that are no whitespace, and marks of writing direction, which can reorder the text around them."""


def clean_display_text(given: str) -> str:
    """Read as HTML: tags are dropped and entities decoded once. The result is text, so it may contain ``<``."""
    text = " ".join(_REMOVED.sub("", "".join(_pieces(given[:READ]))).split())
    return _cut(text).strip()


def _pieces(text: str) -> list[str]:
    pieces, at = [], 0
    for markup in _MARKUP.finditer(text):
        pieces.append(html.unescape(text[at : markup.start()]))
        if (markup["tag"] or "").lower() in _BREAKS:
            pieces.append(" ")
        at = markup.end()
    return [*pieces, html.unescape(text[at:])]


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    at = next((at for at in range(LONGEST, 0, -1) if is_boundary(text, at)), LONGEST)
    return text[:at]
