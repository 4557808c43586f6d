"""Find keywords in a text with one typing error.

One error is one letter too many, too few or wrong, or two neighbours swapped (a Damerau-Levenshtein step), inside one
word of at least five letters: its first and its last letter are right, or «поставка» would be «доставка» and «человек»
would be «человека». Candidates come from an index of words with one letter left out, as in SymSpell, so the cost
does not grow with the number of keywords.
"""

from collections.abc import Iterable, Iterator, Sequence

from autopost_bot.engine.keywords import Keyword, Word

SHORTEST = 5
"""Letters of a word in which an error is forgiven: shorter words turn into other words too easily."""
LONGEST = 64
"""The work for a word grows with the square of its length."""


def one_step_apart(one: str, other: str) -> bool:
    """At most one Damerau-Levenshtein step, and none at the first or the last letter."""
    if one == other:
        return True
    if abs(len(one) - len(other)) > 1 or one[0] != other[0] or one[-1] != other[-1]:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    mine, theirs = one[start:], other[start:]
    return (
        mine[1:] == theirs[1:]
        or mine[1:] == theirs
        or mine == theirs[1:]
        or (mine[:2] == theirs[1::-1] and mine[2:] == theirs[2:])
    )


class TypoIndex:
    """The words of all keywords in which an error is forgiven, with one letter left out."""

    def __init__(self, keywords: Iterable[Keyword]) -> None:
        self._index: dict[str, list[tuple[Keyword, int]]] = {}
        self._longest = 0
        """Letters of the longest such word."""
        for keyword in keywords:
            for place, word in enumerate(_words(keyword)):
                if SHORTEST <= len(word.letters) <= LONGEST:
                    self._longest = max(self._longest, len(word.letters))
                    for variant in _variants(word.letters):
                        self._index.setdefault(variant, []).append((keyword, place))

    def found_in(self, text: str) -> Iterator[Keyword]:
        if not self._index:
            return
        words = text.split(" ")
        for at, word in enumerate(words):
            if len(word) >= SHORTEST - 1:
                yield from (keyword for keyword, place in self._candidates(word) if _matches(keyword, place, words, at))

    def _candidates(self, word: str) -> Iterator[tuple[Keyword, int]]:
        """By the whole word, and by each beginning of it, for keywords that are beginnings. What is longer than any
        keyword with a letter too many is not looked up: a word of a thousand letters would take a second."""
        for length in range(SHORTEST - 1, min(len(word), self._longest + 1) + 1):
            for variant in _variants(word[:length]):
                yield from self._index.get(variant, ())


def _words(keyword: Keyword) -> tuple[Word, ...]:
    """A keyword of ``contains`` is compared with the beginnings of words."""
    return keyword.words or tuple(Word(letters, True) for letters in keyword.letters.split(" "))


def _matches(keyword: Keyword, place: int, words: Sequence[str], at: int) -> bool:
    mine = _words(keyword)
    start = at - place
    if start < 0 or start + len(mine) > len(words):
        return False
    return all(
        _nearly(word, words[start + n]) if n == place else word.matches(words[start + n]) for n, word in enumerate(mine)
    )


def _nearly(word: Word, written: str) -> bool:
    if not word.is_prefix:
        return one_step_apart(word.letters, written)
    length = len(word.letters)
    return any(one_step_apart(word.letters, written[:size]) for size in (length - 1, length, length + 1))


def _variants(word: str) -> set[str]:
    return {word, *(word[:n] + word[n + 1 :] for n in range(len(word)))}
