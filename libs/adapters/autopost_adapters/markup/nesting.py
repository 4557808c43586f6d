"""Which entity may stand inside which.

Telegram's rules apply to every platform: MAX publishes none, and a post should look the same on both. Styles are
adjusted silently: bold around code stops before the code and continues after it, code in a link becomes the link, bold
in bold is bold. A loss of content is reported: a quote in a quote, a link in code, or a spoiler over code, which would
reveal the code.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from autopost_adapters.markup.marked import CODE, NAMES, Entity, Kind, Marked, tidy

LOOKS: frozenset[Kind] = frozenset({"bold", "italic", "underline", "strike", "highlight"})
_STYLES: frozenset[Kind] = LOOKS | {"spoiler"}
WHOLE: frozenset[Kind] = frozenset({"link", "custom_emoji", "time"})
"""What cannot be cut in two: a mention is a link."""
_BLOCKS: frozenset[Kind] = frozenset({"quote", "expandable_quote"})


def nest(marked: Marked) -> tuple[Marked, str | None]:
    """The text with allowed nesting, and the first pair of entities that must not be nested."""
    kept: list[Entity] = []
    inside: Counter[Kind] = Counter()
    open_: list[Entity] = []
    wrong = None
    for entity in marked.entities:
        while open_ and open_[-1].end <= entity.start:
            inside[open_.pop().kind] -= 1
        around = frozenset(+inside)
        if _is_redundant(entity.kind, around):
            continue
        wrong = wrong or _refused(entity.kind, around)
        kept.append(entity)
        open_.append(entity)
        inside[entity.kind] += 1
    return tidy(marked.text, _cut_at_code(kept)), wrong


def _is_redundant(kind: Kind, around: frozenset[Kind]) -> bool:
    if kind in _STYLES and kind in around:
        return True
    if kind in LOOKS or kind == "code":
        return bool(around & CODE) or (kind == "code" and "link" in around)
    return False


def _refused(kind: Kind, around: frozenset[Kind]) -> str | None:
    outer = _forbidden_outer(kind) & around
    return f"{NAMES[kind]} must not be inside {NAMES[min(outer)]}" if outer else None


def _forbidden_outer(kind: Kind) -> frozenset[Kind]:
    """The kinds that must not contain this kind."""
    if kind in _BLOCKS:
        return _BLOCKS | CODE | WHOLE
    if kind in WHOLE:
        return CODE | WHOLE
    if kind == "pre":
        return CODE | WHOLE | {"spoiler"}
    if kind == "code":
        return frozenset({"custom_emoji", "time", "spoiler"})
    return CODE if kind == "spoiler" else frozenset()


def _cut_at_code(entities: Sequence[Entity]) -> Iterable[Entity]:
    """Styles stop before code and continue after it, and break at the edges of a quote that contains the code."""
    code = [entity for entity in entities if entity.kind in CODE]
    starts = [hole.start for hole in code]

    def has_holes(entity: Entity) -> bool:
        return bisect_left(starts, entity.start) < bisect_left(starts, entity.end)

    blocks = (entity for entity in entities if entity.kind in _BLOCKS and has_holes(entity))
    edges = sorted({edge for other in (*code, *blocks) for edge in (other.start, other.end)})
    hidden = frozenset(starts)
    for entity in entities:
        if entity.kind in LOOKS and has_holes(entity):
            yield from _pieces(entity, edges, hidden)
        else:
            yield entity


def _pieces(entity: Entity, edges: Sequence[int], hidden: frozenset[int]) -> Iterable[Entity]:
    inner = edges[bisect_right(edges, entity.start) : bisect_left(edges, entity.end)]
    for start, end in pairwise((entity.start, *inner, entity.end)):
        if start not in hidden:
            yield Entity(entity.kind, start, end, entity.value, entity.format)
