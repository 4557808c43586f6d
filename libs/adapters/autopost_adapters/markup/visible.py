"""Whether a text shows anything: platforms refuse a text of zero-width characters like an empty one."""

import unicodedata

_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0\ufffc"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
)
"""Letters, signs and marks that show nothing by themselves."""


def is_visible(text: str) -> bool:
    return any(character not in _BLANK and unicodedata.category(character)[0] not in "CZ" for character in text)
