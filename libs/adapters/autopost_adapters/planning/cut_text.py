"""Split or truncate a text that is too long.

A cut is never inside an entity or a grapheme cluster. It is made at the end of a paragraph, else of a line, a sentence,
a word, and in the second half of the text that fits, so that no piece is needlessly short. Only whitespace at a cut is
lost.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from autopost_adapters.markup.graphemes import boundaries, is_boundary
from autopost_adapters.markup.marked import Entity, Marked

ELLIPSIS = "…"

Fits = Callable[[Marked], bool]

_PARAGRAPH, _LINE, _SENTENCE, _WORD, _CHARACTER = range(5)
_GAP = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?…][\"'»”’)\]]*\Z")


class Uncuttable(Exception):  # noqa: N818  named for what happened
    """An indivisible range is longer than a message; its text is the argument."""


def split(marked: Marked, fits: Fits, longest: int) -> list[Marked]:
    """``longest``: an upper bound for the characters of a piece."""
    end = len(marked.text)
    whole, pieces = _Whole(marked, [*_places(marked, end), end]), list[Marked]()
    start = 0
    while (at := whole.cut(start, fits, longest, "")) < end:
        pieces.append(whole.part(start, at))
        start = _after_gap(marked.text, at)
    return [*pieces, whole.between(start, end)]


def truncate(marked: Marked, fits: Fits, longest: int) -> Marked:
    if fits(marked):
        return marked
    whole = _Whole(marked, list(_places(marked, longest + 2)))
    at = whole.cut(0, fits, longest, ELLIPSIS)
    return whole.part(0, at).followed_by(ELLIPSIS)


class _Whole:
    """A text with its possible cuts, found once for all pieces; the last one may be the end of the text."""

    def __init__(self, marked: Marked, places: Sequence[int]) -> None:
        self._marked = marked
        self._starts = [entity.start for entity in marked.entities]
        self._places = places
        self._guess = 0
        """The number of places in the previous piece; the next piece is likely to be as long."""

    def part(self, start: int, end: int) -> Marked:
        """Like ``Marked.part``, but reads only the entities in the range."""
        return self.between(start, end).part(0, end - start)

    def cut(self, start: int, fits: Fits, longest: int, ending: str) -> int:
        """The best cut after ``start`` such that the piece, with ``ending`` appended, fits."""
        first = bisect_right(self._places, start)
        places = self._places[first : bisect_left(self._places, start + longest + 2, first)]

        def is_good(at: int) -> bool:
            return fits(self.part(start, at).followed_by(ending))

        reach = self._guess = _furthest(places, is_good, self._guess or len(places))
        if reach and places[reach - 1] == len(self._marked.text):
            return places[reach - 1]
        for at in _by_preference(self._marked.text, start, places[:reach]):
            if is_good(at):
                return at
        raise Uncuttable(self._marked.text[start : places[0] if places else None])

    def between(self, start: int, end: int) -> Marked:
        entities = self._marked.entities[bisect_left(self._starts, start) : bisect_left(self._starts, end)]
        return Marked(self._marked.text[start:end], tuple(entity.moved(-start) for entity in entities))


def _places(marked: Marked, until: int) -> Iterator[int]:
    """Where a cut splits no entity and no grapheme cluster."""
    text, inside = marked.text, 0
    entities = iter(marked.entities)
    following: Entity | None = next(entities, None)
    gap_end, gap_is_good = 0, True
    for at in boundaries(text, until):
        while following and following.start < at:
            inside = max(inside, following.end)
            following = next(entities, None)
        if at >= gap_end:  # a space may carry a combining accent, and must not be lost then
            gap_end = _after_gap(text, at)
            gap_is_good = gap_end == at or is_boundary(text, gap_end)
        if at >= inside and gap_is_good:
            yield at


def _after_gap(text: str, at: int) -> int:
    """The start of the next piece, after the whitespace at ``at``."""
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _furthest(places: Sequence[int], is_good: Callable[[int], bool], guess: int) -> int:
    """How many of the places are within the limit: a longer text never fits where a shorter one does not.

    An exponential search around ``guess``, because the cost of measuring a piece grows with its length.
    """
    low, high = 0, len(places)
    step, at = 1, guess
    while low < high:
        at = min(max(at, low + 1), high)
        if is_good(places[at - 1]):
            low, at = at, at + step
        else:
            high, at = at - 1, at - step
        step *= 2
        if at > high or at <= low:
            at = (low + high + 1) // 2
    return low


def _by_preference(text: str, start: int, places: Sequence[int]) -> list[int]:
    """Best places first; the first half of the text only when the second half has none."""
    if not places:
        return []
    half = start + (places[-1] - start) // 2
    return sorted(places, key=lambda at: (at < half, _class(text, at), -at))


def _class(text: str, at: int) -> int:
    if not text[at].isspace() or text[at - 1].isspace():
        return _CHARACTER
    if breaks := text.count("\n", at, _after_gap(text, at)):
        return _LINE if breaks == 1 else _PARAGRAPH
    return _SENTENCE if _SENTENCE_END.search(text[max(at - 4, 0) : at]) else _WORD
