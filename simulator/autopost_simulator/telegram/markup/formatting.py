"""Text with entities while it is parsed. Offsets are UTF-16 units, as in the Bot API."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autopost_simulator.telegram.markup.links import checked_link, user_of_link

Entity = dict[str, Any]


@dataclass(slots=True)
class Formatted:
    text: str
    entities: list[Entity]


class ParseError(Exception):
    """The reason that follows ``can't parse entities:``."""


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def byte_offset(text: str, position: int) -> int:
    return len(text[:position].encode(errors="surrogatepass"))


class EntityBuilder:
    """The visible text so far, and the entities closed so far."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.entities: list[Entity] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

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

    def link(self, mark: tuple[int, int], url: str | None) -> None:
        """``None``: the text is the address. A bad link disappears without an error."""
        target = self.text_since(mark) if url is None else url
        user = user_of_link(target)
        if user is not None:
            self.entity("text_mention", mark, user={"id": user, "is_bot": False, "first_name": str(user)})
        elif link := checked_link(target):
            self.entity("text_link", mark, url=link)

    def formatted(self) -> Formatted:
        return Formatted(self.text, self.entities)


Parser = Callable[[str], Formatted]
