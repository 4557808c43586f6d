"""A range of a text with an entity, in code points, and the order of the server."""

from dataclasses import dataclass, field
from typing import Any

_PRIORITY = {
    "blockquote": 0,
    "expandable_blockquote": 0,
    "pre": 11,
    "code": 20,
    "text_link": 49,
    "text_mention": 49,
    "bold": 90,
    "italic": 91,
    "underline": 92,
    "strikethrough": 93,
    "spoiler": 94,
    "date_time": 30,
    "custom_emoji": 99,
}
_FOUND = 50
_WITH_LANGUAGE = 10


@dataclass(slots=True)
class Span:
    kind: str
    begin: int
    end: int
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int, int]:
        priority = _WITH_LANGUAGE if self.extra.get("language") else _PRIORITY.get(self.kind, _FOUND)
        return self.begin, -self.end, priority


def in_order(spans: list[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: span.order)
