"""Text with markup: the visible characters, and entities over ranges of them.

HTML and Markdown are parsed into this form, the dialect of each platform is written from it, and lengths, cuts and
limits are computed on it. Positions are code points. Entities nest or are disjoint, outermost first; they never cross.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Kind = Literal[
    "quote",
    "expandable_quote",
    "bold",
    "italic",
    "underline",
    "strike",
    "highlight",
    "spoiler",
    "link",
    "custom_emoji",
    "time",
    "pre",
    "code",
]

NAMES: dict[Kind, str] = {
    "quote": "<blockquote>",
    "expandable_quote": "<blockquote expandable>",
    "bold": "<b>",
    "italic": "<i>",
    "underline": "<u>",
    "strike": "<s>",
    "highlight": "<mark>",
    "spoiler": "<tg-spoiler>",
    "link": "<a>",
    "custom_emoji": "<tg-emoji>",
    "time": "<tg-time>",
    "pre": "<pre>",
    "code": "<code>",
}
"""Names for messages to people. Where two entities cover the same range, the earlier one is the outer one."""

CODE: frozenset[Kind] = frozenset({"code", "pre"})
EDGE = " \t\n\v\f\r\x1c\x1d\x1e\x1f"
"""What is trimmed at the edges of a text; other spaces are used on purpose."""
_GAP = re.compile(r"\s+")
_RANK = {kind: rank for rank, kind in enumerate(NAMES)}


class Entity(Struct, frozen=True):
    kind: Kind
    start: int
    end: int
    value: str = ""
    """The URL of a link, the language of ``pre``, the id of an emoji, the seconds of a time."""
    format: str = ""
    """The display format of a time."""

    def moved(self, by: int) -> "Entity":
        return Entity(self.kind, self.start + by, self.end + by, self.value, self.format)

    def clipped(self, start: int, end: int) -> "Entity":
        """Its part between ``start`` and ``end``, with positions counted from ``start``."""
        first = self.start if self.start > start else start
        last = self.end if self.end < end else end
        return Entity(self.kind, first - start, last - start, self.value, self.format)


class Marked(Struct, frozen=True):
    text: str
    entities: tuple[Entity, ...] = ()

    def part(self, start: int, end: int) -> "Marked":
        """From ``start`` to ``end`` without whitespace at the edges; an entity over an edge is cut there."""
        clipped = (entity.clipped(start, end) for entity in self.entities if entity.start < end and start < entity.end)
        return tidy(self.text[start:end], clipped)

    def followed_by(self, text: str) -> "Marked":
        return Marked(self.text + text, self.entities)

    def plain(self) -> str:
        """Without markup; a URL that is not visible follows its link text in brackets."""
        links = [entity for entity in self.entities if entity.kind == "link"]
        pieces, at = [], 0
        for link in sorted(links, key=lambda entity: entity.end):
            pieces.append(self.text[at : link.end])
            at = link.end
            if link.value not in (seen := self.text[link.start : link.end]) and link.value != f"mailto:{seen}":
                pieces.append(f" ({link.value})")
        return "".join((*pieces, self.text[at:]))


def tidy(text: str, entities: Iterable[Entity]) -> Marked:
    """Trim the text, and each entity to its visible range; empty entities are removed.

    Code keeps its spaces: platforms trim a text only up to its first entity. At the end they trim in code, too.
    """
    gaps = _Gaps(text)
    end = len(text.rstrip(EDGE))
    visible = [entity for entity in entities if entity.start < entity.end]
    code = [gaps.trimmed(entity) for entity in visible if entity.kind in CODE]
    edges = _Edges(code)
    trimmed = [*code, *(edges.kept(entity, gaps.trimmed(entity)) for entity in visible if entity.kind not in CODE)]
    kept = {
        entity if entity.end <= end else entity.clipped(0, end)
        for entity in trimmed
        if entity.start < entity.end and entity.start < end
    }
    lead = min(len(text) - len(text.lstrip(EDGE)), end)
    if lead and kept:
        lead = min(lead, *(entity.start for entity in kept), end)
    return Marked(text[lead:end], in_order({entity.moved(-lead) for entity in kept} if lead else kept))


class _Edges:
    """Where code begins and ends: what contains code is trimmed no further than that, or the two would cross."""

    def __init__(self, code: Iterable[Entity]) -> None:
        seen = [one for one in code if one.start < one.end]
        self._starts = sorted(one.start for one in seen)
        self._ends = sorted(one.end for one in seen)

    def kept(self, entity: Entity, trimmed: Entity) -> Entity:
        if not self._starts:
            return trimmed
        first, after = bisect_left(self._starts, entity.start), bisect_right(self._ends, entity.end)
        start = min([trimmed.start, *self._starts[first : first + 1]])
        end = max([trimmed.end, *self._ends[max(0, after - 1) : after]])
        return trimmed if (start, end) == (trimmed.start, trimmed.end) else replace(entity, start=start, end=end)


def in_order(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    return tuple(sorted(entities, key=_order))


def _order(entity: Entity) -> tuple[int, int, int, str, str]:
    return entity.start, -entity.end, _RANK[entity.kind], entity.value, entity.format


class _Gaps:
    """The whitespace of a text, found once, because many nested entities may cover one long gap."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None
        self._gaps: list[tuple[int, int, int]] = []

    def trimmed(self, entity: Entity) -> Entity:
        """The entity must not be empty. Inline code keeps all spaces, a block of code the indentation of its lines."""
        start, end = entity.start, entity.end
        if self._text[start].isspace():
            _, last_break, visible = self._gap(start)
            if visible >= end:
                return replace(entity, start=end)
            if entity.kind not in CODE:
                start = visible
            elif entity.kind == "pre":
                start = max(start, last_break + 1)
        if entity.kind != "code" and self._text[end - 1].isspace():
            end = self._gap(end - 1)[0]
        return entity if (start, end) == (entity.start, entity.end) else replace(entity, start=start, end=end)

    def _gap(self, at: int) -> tuple[int, int, int]:
        """The start, the last line break (or -1) and the end of the gap around this position."""
        if self._starts is None:
            found = [gap.span() for gap in _GAP.finditer(self._text)]
            self._starts = [start for start, _ in found]
            self._gaps = [(start, self._text.rfind("\n", start, end), end) for start, end in found]
        return self._gaps[bisect_right(self._starts, at) - 1]
