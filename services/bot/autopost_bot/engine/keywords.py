"""Find the keywords of many rules in one text.

The cost grows with the length of the text, not with the number of keywords: they are looked up by their first letters.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from autopost_bot.engine.normal_form import normal_form

GRAM = 3
"""Letters that keywords are looked up by."""


class Word(Struct, frozen=True):
    letters: str
    is_prefix: bool = False
    """Written ``достав*``: any word that begins so."""

    def matches(self, word: str) -> bool:
        return word.startswith(self.letters) if self.is_prefix else word == self.letters


class Keyword(Struct, frozen=True):
    """A keyword of one rule, in normal form."""

    rule: int
    written: str
    """As it stands in the rule."""
    letters: str
    words: tuple[Word, ...]
    """Of mode ``words``; empty for ``contains``."""

    def matches_at(self, words: Sequence[str], place: int) -> bool:
        """Do the words from this place on spell the keyword?"""
        return len(words) - place >= len(self.words) and all(
            mine.matches(word) for mine, word in zip(self.words, words[place:], strict=False)
        )


def read_words(written: str) -> tuple[Word, ...]:
    """The words of a keyword of mode ``words``; several may come of one, as of "e-mail"."""
    return tuple(word for token in written.split() for word in _words_of(token))


def _words_of(token: str) -> Iterator[Word]:
    *before, last = normal_form(token).split(" ")
    yield from map(Word, before)
    if last:
        yield Word(last, token.endswith("*"))


def read_keyword(rule: int, mode: str, written: str) -> Keyword | None:
    """``None`` if nothing is left of it in normal form: it would match everything."""
    words = read_words(written) if mode == "words" else ()
    letters = " ".join(word.letters for word in words) if mode == "words" else normal_form(written)
    return Keyword(rule, written, letters, words) if letters else None


class KeywordIndex:
    """All keywords of a ruleset, by their first letters."""

    def __init__(self, keywords: Iterable[Keyword]) -> None:
        self._contained: dict[str, list[Keyword]] = {}
        self._words: dict[str, list[Keyword]] = {}
        for keyword in keywords:
            index = self._words if keyword.words else self._contained
            index.setdefault(keyword.letters[:GRAM] if not keyword.words else _gram(keyword), []).append(keyword)
        self._short = tuple(keyword for gram, kept in self._contained.items() if len(gram) < GRAM for keyword in kept)

    def found_in(self, text: str) -> Iterator[Keyword]:
        """Each keyword that the text has, perhaps several times."""
        yield from self._found_anywhere(text)
        if self._words:
            yield from self._found_as_words(text.split(" "))

    def _found_anywhere(self, text: str) -> Iterator[Keyword]:
        yield from (keyword for keyword in self._short if keyword.letters in text)
        if not self._contained:
            return
        get = self._contained.get
        for place in range(len(text) - GRAM + 1):
            for keyword in get(text[place : place + GRAM], ()):
                if text.startswith(keyword.letters, place):
                    yield keyword

    def _found_as_words(self, words: Sequence[str]) -> Iterator[Keyword]:
        get = self._words.get
        for place, word in enumerate(words):
            for length in range(1, GRAM + 1):
                for keyword in get(word[:length], ()) if length <= len(word) else ():
                    if keyword.matches_at(words, place):
                        yield keyword


def _gram(keyword: Keyword) -> str:
    return keyword.words[0].letters[:GRAM]
