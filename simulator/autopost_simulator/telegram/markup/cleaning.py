"""Characters that the server replaces or removes, and the trimming of a text with its entities.

Before the first entity spaces and line breaks are trimmed, within it they are not; at the end they are always trimmed.
"""

import re
from bisect import bisect_left

from autopost_simulator.telegram.markup.span import Span

_TO_SPACE = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f]")
_REMOVED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
_DIRECTIONS = re.compile("[\u200e\u200f]+(?=[\u200e\u200f])")
_INVISIBLE = re.compile(
    "[ \n\xa0\u1680\u180e\u2000-\u200f\u202e\u202f\u205f\u2800\u3000\ufeff\ufffc\U000e0000-\U000e007f]*"
)


def clean(text: str, spans: list[Span]) -> str:
    """``spans`` are moved along with their characters; some may be empty afterwards."""
    text = _TO_SPACE.sub(" ", text)
    removed = [found.start() for found in _REMOVED.finditer(text)]
    if removed:
        text = _REMOVED.sub("", text)
        for span in spans:
            span.begin -= bisect_left(removed, span.begin)
            span.end -= bisect_left(removed, span.end)
    return _DIRECTIONS.sub(lambda run: "\u200c" * len(run[0]), text)


def trim(text: str, spans: list[Span]) -> str:
    """``spans`` are in order, and none is empty."""
    text = text.rstrip(" \n")
    spans[:] = [span for span in spans if span.begin < len(text)]
    for span in spans:
        span.end = min(span.end, len(text))
    before = text[: spans[0].begin] if spans else text
    cut = len(before) - len(before.lstrip(" \n"))
    for span in spans:
        span.begin -= cut
        span.end -= cut
    return text[cut:]


def is_invisible(text: str) -> bool:
    return _INVISIBLE.fullmatch(text) is not None
