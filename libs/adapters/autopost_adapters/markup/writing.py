"""Write marked text in a dialect with an opening and a closing mark for each entity."""

from collections.abc import Callable

from autopost_adapters.markup.marked import Entity, Kind, Marked

Tags = Callable[[Entity], tuple[str, str]]
"""The opening and the closing mark of an entity."""
Say = Callable[[str, Kind | None], str]
"""Writes a text; the second argument is the innermost entity around it."""


def write(marked: Marked, tags: Tags, say: Say) -> str:
    writer = _Writer(marked.text, say)
    for entity in marked.entities:
        writer.go_to(entity.start)
        writer.open(entity, *tags(entity))
    writer.go_to(len(marked.text))
    return "".join(writer.out)


class _Writer:
    def __init__(self, text: str, say: Say) -> None:
        self.out: list[str] = []
        self._text, self._say = text, say
        self._open: list[tuple[Entity, str]] = []
        self._at = 0

    def open(self, entity: Entity, begin: str, end: str) -> None:
        self.out.append(begin)
        self._open.append((entity, end))

    def go_to(self, position: int) -> None:
        """Write up to this position and close the entities that end before it, innermost first."""
        while self._open and self._open[-1][0].end <= position:
            self._write(self._open[-1][0].end)
            self.out.append(self._open.pop()[1])
        self._write(position)

    def _write(self, until: int) -> None:
        inside = self._open[-1][0].kind if self._open else None
        if self._at < until:
            self.out.append(self._say(self._text[self._at : until], inside))
            self._at = until
