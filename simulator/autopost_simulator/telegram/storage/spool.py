"""The bytes of uploads in unnamed temporary files, which never outlive the process.

There are at most two generations. When the younger is full, the older is deleted with all its contents. So the disk
holds at most two generations and one upload, and memory only the position of each content.
"""

import hashlib
import tempfile
from dataclasses import dataclass, field
from typing import IO

GENERATION = 256 * 1024 * 1024
CONTENTS = 50_000


@dataclass(slots=True)
class _Generation:
    file: IO[bytes] = field(default_factory=lambda: tempfile.TemporaryFile(buffering=0))  # noqa: SIM115  closed with its generation
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    size: int = 0

    def put(self, digest: str, content: bytes) -> None:
        self.file.seek(self.size)
        self.file.write(content)
        self.places[digest] = (self.size, len(content))
        self.size += len(content)

    def get(self, digest: str) -> bytes | None:
        if digest not in self.places:
            return None
        offset, length = self.places[digest]
        self.file.seek(offset)
        return self.file.read(length)


class Spool:
    def __init__(self, generation: int = GENERATION, contents: int = CONTENTS) -> None:
        self._full = generation
        self._contents = contents
        self._generations: list[_Generation] = []

    def put(self, content: bytes) -> str:
        """Returns its SHA-256, the key for ``get``. Contents of the younger generation are not written twice."""
        digest = hashlib.sha256(content).hexdigest()
        younger = self._younger()
        if digest not in younger.places:
            younger.put(digest, content)
        return digest

    def get(self, digest: str) -> bytes | None:
        """``None`` when it was never stored, or its generation was dropped."""
        for generation in reversed(self._generations):
            content = generation.get(digest)
            if content is not None:
                return content
        return None

    def clear(self) -> None:
        for generation in self._generations:
            generation.file.close()
        self._generations.clear()

    def _younger(self) -> _Generation:
        if not self._generations or self._is_full(self._generations[-1]):
            self._generations.append(_Generation())
        if len(self._generations) > 2:
            self._generations.pop(0).file.close()
        return self._generations[-1]

    def _is_full(self, generation: _Generation) -> bool:
        return generation.size >= self._full or len(generation.places) >= self._contents
