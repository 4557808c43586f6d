"""Text with entities: built while parsing, then normalized as in Telegram."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Entity = dict[str, Any]

ENTITIES_KEPT = 100
_SCHEMES = ("http", "https", "ftp", "tg", "ton", "tonsite")
_USER_LINK = re.compile(r"tg://user\?id=(\d+)")


@dataclass(slots=True)
class Formatted:
    text: str
    entities: list[Entity]


class ParseError(Exception):
    """The reason that follows ``can't parse entities:``."""


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def byte_offset(text: str, position: int) -> int:
    return len(text[:position].encode())


class EntityBuilder:
    """The visible text so far; offsets are UTF-16 units, as in Telegram."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.entities: list[Entity] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.length += utf16_length(text)

    def mark(self) -> tuple[int, int]:
        return self.length, len(self._pieces)

    def text_since(self, mark: tuple[int, int]) -> str:
        return "".join(self._pieces[mark[1] :])

    def entity(self, kind: str, mark: tuple[int, int], **extra: Any) -> None:
        """An empty range gets no entity."""
        if self.length > mark[0]:
            self.entities.append({"type": kind, "offset": mark[0], "length": self.length - mark[0], **extra})

    def link(self, mark: tuple[int, int], url: str) -> None:
        target = url or self.text_since(mark)
        if user := _USER_LINK.fullmatch(target):
            self.entity("text_mention", mark, user={"id": int(user[1]), "is_bot": False, "first_name": user[1]})
        elif normal := normal_url(target):
            self.entity("text_link", mark, url=normal)

    def formatted(self) -> Formatted:
        return Formatted("".join(self._pieces), self.entities)


def normal_url(url: str) -> str | None:
    """The URL as Telegram stores it; ``None`` for an invalid URL."""
    url = url.strip()
    if any(character.isspace() for character in url):
        return None
    full = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(full)
    except ValueError:
        return None
    host = parts.hostname or ""
    if parts.scheme.lower() not in _SCHEMES or not host:
        return None
    if parts.scheme.startswith("http") and "." not in host and host != "localhost":
        return None
    return full if parts.path or parts.query or parts.fragment else f"{full}/"


def finish(formatted: Formatted) -> Formatted:
    """Trim, sort, and remove entities that are not allowed inside code and pre."""
    entities = _outside_code(formatted.entities)
    return _trim(Formatted(formatted.text, sorted(entities, key=_order)[:ENTITIES_KEPT]))


def _order(entity: Entity) -> tuple[int, int]:
    return entity["offset"], -entity["length"]


def _outside_code(entities: list[Entity]) -> list[Entity]:
    code = [entity for entity in entities if entity["type"] in ("code", "pre")]
    return [entity for entity in entities if entity in code or not any(_within(entity, other) for other in code)]


def _within(inner: Entity, outer: Entity) -> bool:
    end, outer_end = inner["offset"] + inner["length"], outer["offset"] + outer["length"]
    return bool(inner["offset"] >= outer["offset"] and end <= outer_end)


def _trim(formatted: Formatted) -> Formatted:
    kept = formatted.text.strip()
    cut = utf16_length(formatted.text) - utf16_length(formatted.text.lstrip())
    length = utf16_length(kept)
    trimmed = [_clip(entity, cut, length) for entity in formatted.entities]
    return Formatted(kept, [entity for entity in trimmed if entity["length"] > 0])


def _clip(entity: Entity, cut: int, length: int) -> Entity:
    start = max(entity["offset"] - cut, 0)
    end = min(entity["offset"] + entity["length"] - cut, length)
    return entity | {"offset": start, "length": end - start}


Parser = Callable[[str], Formatted]
