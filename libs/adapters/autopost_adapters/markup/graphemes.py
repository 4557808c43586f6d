"""Where a text may be cut without tearing a character apart as a reader sees it.

The rules of UAX #29 for extended grapheme clusters, on the careful side: where the standard library does not know
enough (scripts with conjuncts, Hangul letters) a boundary is denied that the standard allows, never the other way.
"""

import re
import unicodedata

_JOINER = "\u200d"
# What combines and is not called a mark: the joiners, Thai and Lao am, halfwidth voice marks, skin tones, tags.
_EXTENDS = re.compile("[\u200c\u200d\u0e33\u0eb3\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_PREPENDS = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941"
    "\U00011a3a\U00011a84-\U00011a89\U00011d46]"
)
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_VOWEL_OR_FINAL = re.compile("[\u1160-\u11ff\ud7b0-\ud7fb]")
_LEADING = re.compile("[\u1100-\u115f\ua960-\ua97c]")
_HANGUL = re.compile("[\u1100-\u11ff\ua960-\ua97c\uac00-\ud7fb]")
_VIRAMA = 9


def is_boundary(text: str, at: int) -> bool:
    """Whether ``text`` may be cut before the character at this position."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if before in "\r\n" or after in "\r\n":
        return True
    return not (_extends(after) or _binds(before, after) or _splits_flag(text, at))


def _extends(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or bool(_EXTENDS.match(character))


def _binds(before: str, after: str) -> bool:
    if before == _JOINER or _PREPENDS.match(before) or unicodedata.combining(before) == _VIRAMA:
        return True
    return bool(_VOWEL_OR_FINAL.match(after) or (_LEADING.match(before) and _HANGUL.match(after)))


def _splits_flag(text: str, at: int) -> bool:
    """Two letters make a flag: an odd number of them before the cut leaves one alone."""
    if not (_FLAG.match(text[at]) and _FLAG.match(text[at - 1])):
        return False
    letters = 0
    while letters < at and _FLAG.match(text[at - 1 - letters]):
        letters += 1
    return letters % 2 == 1
