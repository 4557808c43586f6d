"""Text with entities as the Bot API server makes it: which entities survive side by side, and what is trimmed.

Written from TDLib's ``fix_formatted_text``. Offsets are code points; ``utf16`` converts them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

SPLITTABLE = ("bold", "italic", "underline", "strikethrough", "spoiler", "highlight")
"""``highlight`` is MAX's; the server has the others."""
QUOTES = ("blockquote", "expandable_blockquote")
SOLID = ("code", "pre", "date_time")
"""They contain nothing, and are part of nothing but a quote."""
PRIORITY = {
    "blockquote": 0,
    "expandable_blockquote": 0,
    "pre": 11,
    "code": 20,
    "date_time": 30,
    "text_link": 49,
    "text_mention": 49,
    "bold": 90,
    "italic": 91,
    "underline": 92,
    "strikethrough": 93,
    "spoiler": 94,
    "highlight": 95,
    "custom_emoji": 99,
}

REMOVED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
TO_SPACE = re.compile("[\x00-\x09\x0b\x0c\x0e-\x20]")
DIRECTIONS = re.compile("[\u200e\u200f](?=[\u200e\u200f])")
BLANK = "\u1680\u180e\u2000-\u200f\u202e\u202f\u205f\u2800\u3000\ufffc\ufeff\u00a0\U000e0000-\U000e007f \n\t\x0b\x00"
SEEN = re.compile(f"[^{BLANK}]")


class Refused(Exception):  # noqa: N818  named for what the server does
    """The words of the server."""


@dataclass(frozen=True)
class Entity:
    kind: str
    start: int
    end: int
    value: str = ""
    """The address of a link, the language of a ``pre``, the id of an emoji or a person, the time of a date."""

    @property
    def order(self) -> tuple[int, int, int]:
        return self.start, self.start - self.end, 10 if self.kind == "pre" and self.value else PRIORITY[self.kind]


@dataclass(frozen=True)
class Read:
    text: str
    entities: tuple[Entity, ...] = ()


def shown(text: str, entities: Iterable[Entity]) -> Read:
    """What the reader of a chat sees of a parsed text."""
    fixed = fix(entities)
    cleaned, kept = cleaned_up(text, fixed)
    if not cleaned.strip(" \n"):
        raise Refused("text must be non-empty")
    read = trimmed(cleaned, fix(kept))
    if not SEEN.search(read.text):
        raise Refused("text must be non-empty")
    return read


def in_order(entities: Iterable[Entity]) -> list[Entity]:
    return sorted(entities, key=lambda one: one.order)


def fix(entities: Iterable[Entity]) -> list[Entity]:
    """Nothing crosses; code, links and quotes win over bold and its like, which are cut where they meet them."""
    ordered = in_order(entities)
    split = [one for one in ordered if one.kind in SPLITTABLE]
    quotes = without_overlaps([one for one in ordered if one.kind in QUOTES])
    others = without_overlaps([one for one in ordered if one.kind not in SPLITTABLE + QUOTES])
    solid = in_order([*quotes, *(one for one in others if fits(one, quotes))])
    return in_order([*solid, *cut(split, solid)])


def without_overlaps(entities: list[Entity]) -> list[Entity]:
    kept: list[Entity] = []
    for one in entities:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def fits(one: Entity, quotes: list[Entity]) -> bool:
    """Inside a quote or apart from all of them."""
    return all(
        one.end <= quote.start or quote.end <= one.start or (quote.start <= one.start and one.end <= quote.end)
        for quote in quotes
    )


def cut(split: list[Entity], solid: list[Entity]) -> list[Entity]:
    """Bold and its like: joined where they touch, cut where another begins and at the borders of the others, gone
    inside code."""
    sweep = Sweep(split)
    around: list[Entity] = []
    for one in solid:
        sweep.leave(around, one.start)
        around.append(one)
    sweep.leave(around, END)
    return sweep.found


END = 1 << 31


class Sweep:
    def __init__(self, waiting: list[Entity]) -> None:
        self.found: list[Entity] = []
        self._waiting = waiting
        self._open: dict[str, tuple[int, int]] = {}

    def leave(self, around: list[Entity], position: int) -> None:
        """Up to a position, over the ends of the entities around."""
        while around and around[-1].end <= position:
            known = len(self.found)
            self.advance(around[-1].end)
            if around.pop().kind in SOLID:
                del self.found[known:]
        self.advance(position)

    def advance(self, position: int) -> None:
        while self._waiting and self._waiting[0].start < position:
            one, *self._waiting = self._waiting
            start, end = self._open.get(one.kind, (0, 0))
            if end and one.start <= end:
                self._open[one.kind] = (start, max(end, one.end))
            else:
                self.flush(one.start)
                self._open[one.kind] = (one.start, one.end)
        self.flush(position)

    def flush(self, position: int) -> None:
        for kind in SPLITTABLE:
            start, end = self._open.get(kind, (END, END))
            if start >= position:
                continue
            self.found.append(Entity(kind, start, min(end, position)))
            if end <= position:
                del self._open[kind]
            else:
                self._open[kind] = (position, end)


def cleaned_up(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    removed = [match.start() for match in REMOVED.finditer(text)]
    text = DIRECTIONS.sub("\u200c", TO_SPACE.sub(" ", REMOVED.sub("", text)))
    if removed:
        entities = [
            replace(one, start=one.start - below(removed, one.start), end=one.end - below(removed, one.end))
            for one in entities
        ]
    return text, [one for one in entities if one.end > one.start]


def below(positions: list[int], limit: int) -> int:
    return sum(position < limit for position in positions)


def trimmed(text: str, entities: list[Entity]) -> Read:
    """At the end always; at the start only what stands before the first entity."""
    end = len(text.rstrip(" \n"))
    kept = in_order(replace(one, end=min(one.end, end)) for one in entities if one.start < end)
    limit = kept[0].start if kept else end
    start = min(len(text) - len(text.lstrip(" \n")), limit)
    return Read(text[start:end], tuple(replace(one, start=one.start - start, end=one.end - start) for one in kept))


def utf16(read: Read) -> list[tuple[str, int, int, str]]:
    """Kind, offset, length and value of each entity as the Bot API counts them."""

    def units(text: str) -> int:
        return len(text.encode("utf-16-le")) // 2

    return [
        (one.kind, units(read.text[: one.start]), units(read.text[one.start : one.end]), one.value)
        for one in read.entities
    ]
