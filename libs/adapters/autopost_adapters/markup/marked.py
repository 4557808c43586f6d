"""Text with markup: the characters that are seen, and entities over ranges of them.

HTML and Markdown are read into this, each platform's dialect is written out of it, and lengths, cuts and limits are
judged on it. Positions are code points. Entities nest or are apart, outermost first; they never cross.
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
"""How a kind is called in a message to a human. The order is that of nesting where two cover the same range."""

_GAP = re.compile(r"\s+")
_RANK = {kind: rank for rank, kind in enumerate(NAMES)}


class Entity(Struct, frozen=True):
    kind: Kind
    start: int
    end: int
    value: str = ""
    """The address of a link, the language of ``pre``, the id of an emoji, the seconds of a time."""
    format: str = ""
    """How a time is shown."""

    def moved(self, by: int) -> "Entity":
        return Entity(self.kind, self.start + by, self.end + by, self.value, self.format)


class Marked(Struct, frozen=True):
    text: str
    entities: tuple[Entity, ...] = ()

    def part(self, start: int, end: int) -> "Marked":
        """From ``start`` to ``end`` without the whitespace at its edges; no entity may be cut by it."""
        seen = self.text[start:end]
        start += len(seen) - len(seen.lstrip())
        end = start + len(seen.strip())
        inside = (entity for entity in self.entities if start <= entity.start and entity.end <= end)
        return Marked(self.text[start:end], tuple(entity.moved(-start) for entity in inside))

    def followed_by(self, text: str) -> "Marked":
        return Marked(self.text + text, self.entities)

    def plain(self) -> str:
        """Without markup; an address that cannot be seen stands in brackets behind the words it was under."""
        links = [entity for entity in self.entities if entity.kind == "link"]
        pieces, at = [], 0
        for link in sorted(links, key=lambda entity: entity.end):
            pieces.append(self.text[at : link.end])
            at = link.end
            if link.value not in (seen := self.text[link.start : link.end]) and link.value != f"mailto:{seen}":
                pieces.append(f" ({link.value})")
        return "".join((*pieces, self.text[at:]))


def tidy(text: str, entities: Iterable[Entity]) -> Marked:
    """Trimmed: the text, and each entity to what is seen of it; one that covers nothing is gone."""
    lead = len(text) - len(text.lstrip())
    gaps = _Gaps(text)
    trimmed = (gaps.trimmed(entity) for entity in entities if entity.start < entity.end)
    return Marked(text.strip(), in_order({entity.moved(-lead) for entity in trimmed if entity.start < entity.end}))


def in_order(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    return tuple(sorted(entities, key=_order))


def _order(entity: Entity) -> tuple[int, int, int, str, str]:
    return entity.start, -entity.end, _RANK[entity.kind], entity.value, entity.format


class _Gaps:
    """The whitespace of a text, found once: entities may be many, one in the other, over one long gap."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None
        self._ends: list[int] = []

    def trimmed(self, entity: Entity) -> Entity:
        """Of an entity that covers anything at all."""
        start, end = entity.start, entity.end
        if self._text[start].isspace():
            start = self._gap(start)[1]
        if self._text[end - 1].isspace():
            end = self._gap(end - 1)[0]
        return entity if (start, end) == (entity.start, entity.end) else replace(entity, start=start, end=end)

    def _gap(self, at: int) -> tuple[int, int]:
        """Where the gap around this position begins and ends."""
        if self._starts is None:
            found = [gap.span() for gap in _GAP.finditer(self._text)]
            self._starts, self._ends = [start for start, _ in found], [end for _, end in found]
        place = bisect_right(self._starts, at) - 1
        return self._starts[place], self._ends[place]
