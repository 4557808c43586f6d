"""Boundaries of grapheme clusters, so that a cut never splits a visible character.

The rules of UAX #29 for extended grapheme clusters, but conservative: where the standard library lacks data
(scripts with conjuncts, Hangul letters) some allowed boundaries are denied, and no forbidden one is allowed.
"""

import re
import unicodedata
from collections.abc import Iterator

_JOINER = "\u200d"
# Combining characters outside category M: joiners, Thai and Lao am, halfwidth voice marks, skin tones, tags.
_EXTENDS = re.compile("[\u200c\u200d\u0e33\u0eb3\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_PREPENDS = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941"
    "\U00011a3a\U00011a84-\U00011a89\U00011d46]"
)
_VOWEL_OR_FINAL = re.compile("[\u1160-\u11ff\ud7b0-\ud7fb]")
_LEADING = re.compile("[\u1100-\u115f\ua960-\ua97c]")
_HANGUL = re.compile("[\u1100-\u11ff\ua960-\ua97c\uac00-\ud7fb]")
_VIRAMA = 9


def is_boundary(text: str, at: int) -> bool:
    """Whether ``text`` may be cut before the character at this position."""
    if at <= 0 or at >= len(text):
        return True
    return _separates(text[at - 1], text[at]) and not _splits_flag(text, at)


def boundaries(text: str, until: int) -> Iterator[int]:
    """All boundaries between 0 and ``until``, in one pass: a run of flags is not counted again at each letter."""
    letters = 0
    before = text[:1]
    for at in range(1, min(until, len(text))):
        after = text[at]
        letters = letters + 1 if _is_flag_letter(before) else 0
        if _separates(before, after) and not (letters % 2 and _is_flag_letter(after)):
            yield at
        before = after


def _separates(before: str, after: str) -> bool:
    """Whether there is a boundary between two characters; flag letters are checked elsewhere."""
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if before in "\r\n" or after in "\r\n":
        return True
    return not (_extends(after) or _binds(before, after))


def _extends(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or bool(_EXTENDS.match(character))


def _binds(before: str, after: str) -> bool:
    if before == _JOINER or _PREPENDS.match(before) or unicodedata.combining(before) == _VIRAMA:
        return True
    return bool(_VOWEL_OR_FINAL.match(after) or (_LEADING.match(before) and _HANGUL.match(after)))


def _splits_flag(text: str, at: int) -> bool:
    """Two letters make a flag, so an odd number before the cut splits a flag."""
    if not (_is_flag_letter(text[at]) and _is_flag_letter(text[at - 1])):
        return False
    letters = 0
    while letters < at and _is_flag_letter(text[at - 1 - letters]):
        letters += 1
    return letters % 2 == 1


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
