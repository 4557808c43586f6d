"""Cut a text that is too long: into pieces, or off.

A cut is never inside an entity or inside what a reader sees as one character. It is made at the end of a paragraph,
else of a line, a sentence, a word: of those in the second half of what fits, so that no piece is needlessly short.
Whitespace at a cut is lost, nothing else.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from autopost_adapters.markup.graphemes import is_boundary
from autopost_adapters.markup.marked import Entity, Marked

ELLIPSIS = "…"

Fits = Callable[[Marked], bool]

_PARAGRAPH, _LINE, _SENTENCE, _WORD, _CHARACTER = range(5)
_GAP = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?…][\"'»”’)\]]*\Z")


class Uncuttable(Exception):  # noqa: N818  named for what happened
    """What must stay whole is longer than a message; its text is the argument."""


def split(marked: Marked, fits: Fits, longest: int) -> list[Marked]:
    """``longest``: no piece of more characters can fit."""
    starts = [entity.start for entity in marked.entities]
    pieces: list[Marked] = []
    start = 0
    while True:
        reached = slice(bisect_left(starts, start), bisect_left(starts, start + longest + 2))
        rest = Marked(marked.text[start:], tuple(entity.moved(-start) for entity in marked.entities[reached]))
        if fits(rest):
            return [*pieces, rest]
        at = _cut(rest, fits, longest, "")
        pieces.append(rest.part(0, at))
        start += _behind_gap(rest.text, at)


def truncate(marked: Marked, fits: Fits, longest: int) -> Marked:
    if fits(marked):
        return marked
    at = _cut(marked, fits, longest, ELLIPSIS)
    return marked.part(0, at).followed_by(ELLIPSIS)


def _cut(marked: Marked, fits: Fits, longest: int, ending: str) -> int:
    """The best place for a cut before which the text fits, with ``ending`` behind it."""
    places = list(_places(marked, longest))

    def is_good(at: int) -> bool:
        return fits(marked.part(0, at).followed_by(ending))

    reach = _furthest(places, is_good)
    for at in _by_preference(marked.text, places[:reach]):
        if is_good(at):
            return at
    raise Uncuttable(_whole(marked, places))


def _places(marked: Marked, longest: int) -> Iterator[int]:
    """Where a cut would tear nothing apart, up to the first that is surely too far."""
    inside = 0
    entities = iter(marked.entities)
    following: Entity | None = next(entities, None)
    for at in range(1, min(longest + 2, len(marked.text))):
        while following and following.start < at:
            inside = max(inside, following.end)
            following = next(entities, None)
        if at >= inside and is_boundary(marked.text, at) and is_boundary(marked.text, _behind_gap(marked.text, at)):
            yield at


def _behind_gap(text: str, at: int) -> int:
    """Where the next piece begins: a space can be what an accent stands on, and then it must not be lost."""
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _furthest(places: Sequence[int], is_good: Callable[[int], bool]) -> int:
    """How many of the places are near enough: more text never fits where less did not."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if is_good(places[middle]):
            low = middle + 1
        else:
            high = middle
    return low


def _by_preference(text: str, places: Sequence[int]) -> list[int]:
    """Best first; the near half only when the far one has none."""
    if not places:
        return []
    half = places[-1] // 2
    return sorted(places, key=lambda at: (at < half, _class(text, at), -at))


def _class(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    if gap is None or text[at - 1].isspace():
        return _CHARACTER
    if breaks := gap[0].count("\n"):
        return _LINE if breaks == 1 else _PARAGRAPH
    return _SENTENCE if _SENTENCE_END.search(text[max(at - 4, 0) : at]) else _WORD


def _whole(marked: Marked, places: Sequence[int]) -> str:
    end = places[0] if places else len(marked.text)
    return marked.text[:end]
