"""The append-only log: one JSON line per provider request, written before the answer is sent.

With a file, every line is written to the kernel by itself, so a SIGKILL loses no line of an
answered call. Memory holds only the newest lines; older ones are read back from the file. A reader
keeps its own position and pulls more lines, so a slow reader needs no buffer.
"""

import asyncio
import os
from array import array
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

Platform = Literal["telegram", "max"]
Verdict = Literal["accepted", "refused", "rate_limited", "faulted", "reset", "hung"]

LINES_KEPT = 10_000
BYTES_KEPT = 16 * 1024 * 1024
INDEX_EVERY = 512


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """``arrived_ns`` and ``answered_ns`` use one monotonic clock; a hung request has no answer."""

    seq: int
    platform: Platform
    token: str
    method: str
    chat: str | None
    arrived_ns: int
    arrived_at: str
    answered_ns: int | None
    answered_at: str | None
    status: int | None
    verdict: Verdict
    error: str | None
    text: str | None
    body_sha256: str
    message_ids: list[int | str]
    uploads: int = 0
    """Files whose bytes came with the request."""
    fault: str | None


class Journal:
    def __init__(self, path: Path | None = None, *, lines_kept: int = LINES_KEPT, bytes_kept: int = BYTES_KEPT) -> None:
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._lines_kept, self._bytes_kept = lines_kept, bytes_kept
        self._file = _File(path) if path else None
        self._encoder = msgspec.json.Encoder()
        self._listeners: set[asyncio.Event] = set()
        self.last = self._file.last if self._file else 0
        self._oldest_kept = self.last + 1
        self.start = self.last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def next_seq(self) -> int:
        return self.last + 1

    def append(self, entry: Entry) -> None:
        line = self._encoder.encode(entry) + b"\n"
        if self._file:
            self._file.append(entry.seq, line)
        self.last = entry.seq
        self._lines.append(line)
        self._size += len(line)
        while len(self._lines) > self._lines_kept or self._size > self._bytes_kept:
            self._size -= len(self._lines.popleft())
            self._oldest_kept += 1
        for news in self._listeners:
            news.set()

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that every new line sets; the listener clears it."""
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            yield news
        finally:
            self._listeners.remove(news)

    def forget(self) -> None:
        """New readers start here; the file keeps all lines."""
        self.start = self.last

    def read(self, after: int, count: int) -> tuple[list[bytes], int]:
        """The next ``count`` lines after a seq, and the last seq; lines no longer in memory are skipped."""
        if self._file and after + 1 < self._oldest_kept:
            lines = self._file.read(after, min(count, self.last - after))
            return lines, after + len(lines)
        first = max(after + 1, self._oldest_kept)
        until = min(first + count - 1, self.last)
        return [self._lines[seq - self._oldest_kept] for seq in range(first, until + 1)], max(until, after)

    def newest(self) -> Iterator[bytes]:
        """Newest first, from memory only."""
        since_start = min(self.last - self.start, len(self._lines))
        lines = list(self._lines)[len(self._lines) - since_start :]
        return reversed(lines)

    def close(self) -> None:
        if self._file:
            self._file.close()


class _File:
    """The log on disk, with the offset of every ``INDEX_EVERY``-th line."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._offsets = array("Q")
        self._end = 0
        self.last = 0
        self._take_up()

    def append(self, seq: int, line: bytes) -> None:
        self._index(seq)
        written = os.write(self._descriptor, line)
        while written < len(line):
            written += os.write(self._descriptor, line[written:])
        self._end += len(line)

    def read(self, after: int, count: int) -> list[bytes]:
        block = after // INDEX_EVERY
        skipped = after - block * INDEX_EVERY
        with self._path.open("rb") as file:
            file.seek(self._offsets[block])
            return list(islice(file, skipped, skipped + count))

    def close(self) -> None:
        os.close(self._descriptor)

    def _index(self, seq: int) -> None:
        if (seq - 1) % INDEX_EVERY == 0:
            self._offsets.append(self._end)

    def _take_up(self) -> None:
        """Continue an existing file; an incomplete last line is removed."""
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.last += 1
                self._index(self.last)
                self._end += len(line)
        os.ftruncate(self._descriptor, self._end)
