"""A file assembled from chunks in any order.

The checksum covers every byte; the bytes themselves are kept only while the file is small enough.
"""

import hashlib

from autopost_simulator.max.refusal import named

KEPT = 64 * 1024 * 1024


class Assembly:
    def __init__(self, total: int | None = None, *, kept: int = KEPT) -> None:
        self.total = total
        self._most = kept
        self.size = 0
        self._digest = hashlib.sha256()
        self._kept: bytearray | None = bytearray()
        self._waiting: dict[int, bytes] = {}

    @property
    def complete(self) -> bool:
        return self.total is None or self.size == self.total

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    @property
    def data(self) -> bytes | None:
        return None if self._kept is None else bytes(self._kept)

    def append(self, piece: bytes) -> None:
        self.size += len(piece)
        self._digest.update(piece)
        if self._kept is not None and self.size > self._most:
            self._kept = None
        if self._kept is not None:
            self._kept += piece

    def put(self, start: int, piece: bytes) -> None:
        """A repeated chunk changes nothing; an early chunk waits for those before it."""
        if sum(map(len, self._waiting.values())) + len(piece) > self._most:
            raise named("upload_pieces_missing")
        self._waiting[start] = piece
        while (next_start := self._reachable()) is not None:
            waiting = self._waiting.pop(next_start)
            self.append(waiting[self.size - next_start :])

    def received(self) -> str:
        return f"0-{self.size - 1}/{self.total}" if self.size else f"0/{self.total or 0}"

    def _reachable(self) -> int | None:
        return next((start for start in self._waiting if start <= self.size), None)
