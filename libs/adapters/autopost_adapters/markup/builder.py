"""Collects the pieces of text and the entities that a markup parser finds.

A mark is text until its pair is found, and is then removed. So positions are indexes of pieces; they become
character offsets only at the end.
"""

from itertools import accumulate

from autopost_adapters.markup.marked import Entity, Kind, Marked, tidy


class Builder:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._entities: list[tuple[Kind, int, int, str, str]] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def add_each(self, characters: str) -> None:
        """Each character becomes its own piece."""
        self._pieces.extend(characters)

    @property
    def here(self) -> int:
        return len(self._pieces)

    def forget(self, piece: int) -> None:
        """The piece was a mark and not text."""
        self._pieces[piece] = ""

    def cover(self, kind: Kind, since: int, value: str = "", format: str = "") -> None:
        self._entities.append((kind, since, self.here, value, format))

    def at_line_start(self) -> bool:
        last = next((piece for piece in reversed(self._pieces) if piece), "\n")
        return last.endswith("\n")

    def marked(self) -> Marked:
        at = [0, *accumulate(map(len, self._pieces))]
        entities = (Entity(kind, at[start], at[end], value, shown) for kind, start, end, value, shown in self._entities)
        return tidy("".join(self._pieces), entities)
