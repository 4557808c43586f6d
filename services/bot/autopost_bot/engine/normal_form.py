"""The normal form in which texts and keywords are compared. docs/bot.md lists every step.

ДОСТАВКА, достáвка и «доставкё»  →  доставка доставка и доставке
"""

import re
import unicodedata
from functools import lru_cache

LONGEST = 1000
"""Characters of a text that are looked at; a keyword further behind is not found."""

_PLAIN = re.compile(r"[0-9a-zа-яё \n.,?!:;()«»\"'/№#*+=%_—–-]*")
"""Texts that need neither a Unicode form nor a look at their accents."""
_INVISIBLE = re.compile("[\u00ad\u034f\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff]")
_GAP = re.compile(r"[\W_]+")
_SHORT_I = ("и\u0306", "й")
_LATIN = re.compile(r"[a-z]")
_CYRILLIC = re.compile(r"[а-яё]")
_LOOKALIKES = str.maketrans("aceopxykmthb", "асеорхукмтнв")
_RUSSIAN_KEYS = str.maketrans(
    "qwertyuiop[]asdfghjkl;'zxcvbnm,.`{}:\"<>~",
    "йцукенгшщзхъфывапролджэячсмитьбюёхъжэбюё",
)


@lru_cache(maxsize=256)
def normal_form(text: str) -> str:
    folded = text[:LONGEST].casefold()
    if not _PLAIN.fullmatch(folded):
        folded = _without_accents(folded)
    words = _GAP.sub(" ", folded[:LONGEST].replace("ё", "е")).strip()
    return _one_alphabet(words) if _LATIN.search(words) and _CYRILLIC.search(words) else words


def as_russian_layout(text: str) -> str | None:
    """The normal form of a text without Cyrillic as it would be if the keyboard had been switched to Russian."""
    folded = text[:LONGEST].casefold()
    return None if _CYRILLIC.search(folded) else normal_form(folded.translate(_RUSSIAN_KEYS))


def _without_accents(folded: str) -> str:
    """Full-width and similar forms become plain ones; accents and invisible characters go."""
    composed = unicodedata.normalize("NFKC", _INVISIBLE.sub("", folded)).casefold()[:LONGEST]
    letters = unicodedata.normalize("NFKD", composed).replace(*_SHORT_I)
    if not any(map(unicodedata.combining, letters)):
        return letters
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _one_alphabet(words: str) -> str:
    """A Latin letter in a word with Cyrillic ones becomes the Cyrillic letter that looks the same."""
    return " ".join(word.translate(_LOOKALIKES) if _CYRILLIC.search(word) else word for word in words.split(" "))
