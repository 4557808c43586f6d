"""Write marked text in a dialect that has a beginning and an end for each entity."""

from collections.abc import Callable

from autopost_adapters.markup.marked import Entity, Kind, Marked

Tags = Callable[[Entity], tuple[str, str]]
"""How an entity begins and ends."""
Say = Callable[[str, Kind | None], str]
"""How text is written inside the innermost entity around it."""


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
        """Write up to here, and close what ends on the way, innermost first."""
        while self._open and self._open[-1][0].end <= position:
            self._write(self._open[-1][0].end)
            self.out.append(self._open.pop()[1])
        self._write(position)

    def _write(self, until: int) -> None:
        inside = self._open[-1][0].kind if self._open else None
        if self._at < until:
            self.out.append(self._say(self._text[self._at : until], inside))
            self._at = until
