"""Clean the text that is shown for an action: plain text of at most 300 characters."""

import re
from html.parser import HTMLParser

from autopost_adapters.markup.graphemes import is_boundary

LONGEST = 300
READ = 4096
"""Characters of the given text that are read: the parser needs quadratic time for some hostile texts."""

_HIDDEN = frozenset({"script", "style"})
_BREAKS = frozenset({"br", "p", "div", "li", "tr", "hr"})
_REMOVED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control characters that are no whitespace, and marks of writing direction, which can reorder the text around them."""


def clean_display_text(given: str) -> str:
    """Read as HTML: tags are dropped and entities decoded once. The result is text, so it may contain ``<``."""
    reader = _TextReader()
    reader.feed(given[:READ])
    reader.close()
    text = " ".join(_REMOVED.sub("", "".join(reader.pieces)).split())
    return _cut(text).strip()


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    at = next((at for at in range(LONGEST, 0, -1) if is_boundary(text, at)), LONGEST)
    return text[:at]


class _TextReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, _: object) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _BREAKS:
            self.pieces.append(" ")

    def handle_startendtag(self, tag: str, _: object) -> None:
        if tag in _BREAKS:
            self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN and self._hidden:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)
