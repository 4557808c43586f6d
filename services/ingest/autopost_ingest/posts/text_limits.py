"""Limits of a text: its length, and combining marks in a row."""

import re
import unicodedata

LONGEST_TEXT = 65_536
"""Sixteen messages of the maximum length; no plan has more."""
MOST_MARKS = 30

_MAYBE_MARK = re.compile(r"[^\w\s\x00-\u02ff]")
"""Matches every mark and little else: no mark is a letter, a space or below U+0300."""


def has_too_many_marks(text: str) -> bool:
    """Checks one character in ``MOST_MARKS + 1``: a longer run of marks cannot fit between two of them."""
    step = MOST_MARKS + 1
    sample = text[MOST_MARKS::step]
    return any(
        _run_around(text, MOST_MARKS + found.start() * step) > MOST_MARKS for found in _MAYBE_MARK.finditer(sample)
    )


def _run_around(text: str, at: int) -> int:
    """Length of the run of marks at this place, counted up to the limit."""
    if not _is_mark(text[at]):
        return 0
    start, end = at, at + 1
    while start > 0 and at - start <= MOST_MARKS and _is_mark(text[start - 1]):
        start -= 1
    while end < len(text) and end - at <= MOST_MARKS and _is_mark(text[end]):
        end += 1
    return end - start


def _is_mark(character: str) -> bool:
    return unicodedata.combining(character) != 0 or unicodedata.category(character).startswith("M")
