"""Split or truncate a text that is too long.

A cut is never inside a grapheme cluster, a link, a custom emoji or a time. Inside any other entity it is made only
where no cut between entities is in reach, or where the entity is longer than a message anyway; both pieces then have
the entity. A cut is at the end of a paragraph, else of a line, a sentence, a word, and in the second half of the text
that fits, so that no piece is needlessly short. Only whitespace at a cut is lost, and in code only one line break.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from autopost_adapters.markup.graphemes import boundaries, is_boundary
from autopost_adapters.markup.marked import CODE, EDGE, Entity, Marked, tidy
from autopost_adapters.markup.nesting import WHOLE
from autopost_adapters.markup.visible import is_visible

ELLIPSIS = "…"

Fits = Callable[[Marked], bool]

_FIRST_GUESS = 200
"""Places in a piece with markup: with many entities a piece is short, and a long one costs much to measure."""
_PARAGRAPH, _LINE, _SENTENCE, _WORD, _CHARACTER = range(5)
_GAP = re.compile(f"[{EDGE}]+")
_SENTENCE_END = re.compile(r"[.!?…][\"'»”’)\]]*\Z")


class Uncuttable(Exception):  # noqa: N818  named for what happened
    """An indivisible range is longer than a message; its text is the argument."""


def split(marked: Marked, fits: Fits, longest: int) -> list[Marked]:
    """``longest``: an upper bound for the characters of a piece."""
    end = len(marked.text)
    whole, pieces = _Whole(marked, end, longest), list[Marked]()
    while (at := whole.cut(fits, longest, "", _between_entities)) < end:
        pieces.append(whole.part(at))
        whole.go_on_after(at)
    return [piece for piece in (*pieces, whole.part(end)) if is_visible(piece.text)]


def truncate(marked: Marked, fits: Fits, longest: int) -> Marked:
    if fits(marked):
        return marked
    whole = _Whole(marked, min(longest + 2, len(marked.text)), longest)
    return whole.part(whole.cut(fits, longest, ELLIPSIS, _long_piece)).followed_by(ELLIPSIS)


class _Whole:
    """A text with its possible cuts, found once for all pieces; the end of the text is one."""

    def __init__(self, marked: Marked, until: int, longest: int) -> None:
        self._marked = marked
        self._starts = [entity.start for entity in marked.entities]
        self._code = [entity for entity in marked.entities if entity.kind in CODE]
        self._code_starts = [entity.start for entity in self._code]
        self._inside: set[int] = set()
        """The cuts inside an entity that could be kept in one piece."""
        self._places = [*self._possible(until, longest), len(marked.text)]
        self._start = 0
        self._open: list[Entity] = []
        """The entities that begin before the current piece and reach into it."""
        self._guess = 0
        """The number of places in the previous piece; the next piece is likely to be as long."""

    def part(self, end: int) -> Marked:
        """The current piece, up to ``end``."""
        first, last = bisect_left(self._starts, self._start), bisect_left(self._starts, end)
        entities = (*self._open, *self._marked.entities[first:last])
        inside = (entity.clipped(self._start, end) for entity in entities)
        return tidy(self._marked.text[self._start : end], inside)

    def go_on_after(self, at: int) -> None:
        """The next piece begins after the cut at this position."""
        first, self._start = bisect_left(self._starts, self._start), self._after_cut(at)
        begun = (*self._open, *self._marked.entities[first : bisect_left(self._starts, self._start)])
        self._open = [entity for entity in begun if entity.end > self._start]

    def cut(self, fits: Fits, longest: int, ending: str, preference: "Preference") -> int:
        """The best cut such that the current piece, with ``ending`` appended, fits."""
        start = self._start
        first = bisect_right(self._places, start)
        places = self._places[first : bisect_left(self._places, start + longest + 2, first)]

        def is_good(at: int) -> bool:
            return fits(self.part(at).followed_by(ending))

        guess = self._guess or (min(len(places), _FIRST_GUESS) if self._marked.entities else len(places))
        reach = self._guess = _furthest(places, is_good, guess)
        if reach and places[reach - 1] == len(self._marked.text):
            return places[reach - 1]
        for at in self._by_preference(places[:reach], preference):
            if is_good(at):
                return at
        raise Uncuttable(self._marked.text[start : places[0] if places else None])

    def _by_preference(self, places: Sequence[int], preference: "Preference") -> list[int]:
        """Best places first."""
        if not places:
            return []
        text, inside = self._marked.text, self._inside
        half = self._start + (places[-1] - self._start) // 2
        return sorted(places, key=lambda at: (*preference(at in inside, at < half), _class(text, at), -at))

    def _possible(self, until: int, longest: int) -> Iterator[int]:
        """Where a cut splits no grapheme cluster and nothing that must stay whole."""
        text, entities = self._marked.text, iter(self._marked.entities)
        following: Entity | None = next(entities, None)
        whole_until = kept_until = gap_end = 0
        gap_is_good = True
        for at in boundaries(text, until):
            while following and following.start < at:
                if following.kind in WHOLE:
                    whole_until = max(whole_until, following.end)
                elif following.end - following.start <= longest:
                    kept_until = max(kept_until, following.end)
                following = next(entities, None)
            if at >= gap_end:  # a space may carry a combining accent, and must not be lost then
                gap_end = self._after_cut(at)
                gap_is_good = gap_end == at or is_boundary(text, gap_end)
            if at >= whole_until and gap_is_good:
                if at < kept_until:
                    self._inside.add(at)
                yield at

    def _after_cut(self, at: int) -> int:
        """After the whitespace at the cut. In code only one line break is skipped, so lines keep their indentation."""
        place = bisect_left(self._code_starts, at)
        if place and self._code[place - 1].end > at:
            return at + (self._marked.text[at] == "\n")
        end = _after_gap(self._marked.text, at)
        return min(end, self._code_starts[place]) if place < len(self._code_starts) else end


def _after_gap(text: str, at: int) -> int:
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


Preference = Callable[[bool, bool], tuple[bool, bool]]
"""The order of two flaws of a cut: it is inside an entity, and it is in the first half of the text that fits."""


def _between_entities(is_inside: bool, is_early: bool) -> tuple[bool, bool]:
    return is_inside, is_early


def _long_piece(is_inside: bool, is_early: bool) -> tuple[bool, bool]:
    """Of a truncated text the rest is lost, so the piece is long above all."""
    return is_early, is_inside


def _class(text: str, at: int) -> int:
    if text[at] not in EDGE or text[at - 1] in EDGE:
        return _CHARACTER
    if breaks := text.count("\n", at, _after_gap(text, at)):
        return _LINE if breaks == 1 else _PARAGRAPH
    return _SENTENCE if _SENTENCE_END.search(text[max(at - 4, 0) : at]) else _WORD
