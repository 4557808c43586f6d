"""Text with markup: the visible characters, and entities over ranges of them.

HTML and Markdown are parsed into this form, the dialect of each platform is written from it, and lengths, cuts and
limits are computed on it. Positions are code points. Entities nest or are disjoint, outermost first; they never cross.
"""

import re
from bisect import bisect_right
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


class Marked(Struct, frozen=True):
    text: str
    entities: tuple[Entity, ...] = ()

    def part(self, start: int, end: int) -> "Marked":
        """From ``start`` to ``end`` without whitespace at the edges; the range must not cut an entity."""
        seen = self.text[start:end]
        start += len(seen) - len(seen.lstrip())
        end = start + len(seen.strip())
        inside = (entity for entity in self.entities if start <= entity.start and entity.end <= end)
        return Marked(self.text[start:end], tuple(entity.moved(-start) for entity in inside))

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
    """Trim the text, and each entity to its visible range; empty entities are removed."""
    lead = len(text) - len(text.lstrip())
    gaps = _Gaps(text)
    trimmed = (gaps.trimmed(entity) for entity in entities if entity.start < entity.end)
    return Marked(text.strip(), in_order({entity.moved(-lead) for entity in trimmed if entity.start < entity.end}))


def in_order(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    return tuple(sorted(entities, key=_order))


def _order(entity: Entity) -> tuple[int, int, int, str, str]:
    return entity.start, -entity.end, _RANK[entity.kind], entity.value, entity.format


class _Gaps:
    """The whitespace of a text, found once, because many nested entities may cover one long gap."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None
        self._ends: list[int] = []

    def trimmed(self, entity: Entity) -> Entity:
        """The entity must not be empty."""
        start, end = entity.start, entity.end
        if self._text[start].isspace():
            start = self._gap(start)[1]
        if self._text[end - 1].isspace():
            end = self._gap(end - 1)[0]
        return entity if (start, end) == (entity.start, entity.end) else replace(entity, start=start, end=end)

    def _gap(self, at: int) -> tuple[int, int]:
        """The start and the end of the gap around this position."""
        if self._starts is None:
            found = [gap.span() for gap in _GAP.finditer(self._text)]
            self._starts, self._ends = [start for start, _ in found], [end for _, end in found]
        place = bisect_right(self._starts, at) - 1
        return self._starts[place], self._ends[place]
