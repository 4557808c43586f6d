"""Write log lines to standard output without ever blocking or raising; lines that cannot be written are counted.

A full disk or a pipe without a reader would raise or block in the middle of a request or delivery. So each line is
written directly to the descriptor while it can take one: a writable pipe takes up to a page without blocking. What it
cannot take waits in memory, and a thread writes it: a slow reader costs the event loop nothing.
"""

import atexit
import errno
import io
import os
import select
import threading
from collections import deque
from datetime import timedelta
from typing import Protocol, TextIO

from autopost_runtime.telemetry import metrics

PAGE = 4096
"""A writable pipe accepts this many bytes without blocking."""
MOST_WAITING = 1024 * 1024
"""Bytes that wait for a slow reader; further lines are lost."""
PATIENCE = timedelta(milliseconds=500)
"""How long the end of the process waits for a slow reader."""

_lost = metrics.counter("autopost_log_lines_lost_total", "Lost log lines by reason.")


class Output(Protocol):
    """What structlog and logging write to."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class Descriptor:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = _poll_of(descriptor)
        self._waiting: deque[bytes] = deque()
        """Lines, and the unwritten end of a line. Only the thread writes while there are any."""
        self._size = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_torn = False
        """The last line was written in part; the next begins on a line of its own."""

    def write(self, text: str) -> None:
        line = text.encode("utf-8", "backslashreplace")
        with self._changed:
            try:
                self._add(line if self._waiting else self._unwritten(line))
            except OSError as exc:
                _lost.add(1, {"reason": _reason(exc)})

    def flush(self) -> None:
        """Called after each line: waiting here would block."""

    def close(self, within: timedelta = PATIENCE) -> None:
        """Wait for a slow reader, and end the thread."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, within.total_seconds())
            self._is_closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(PATIENCE.total_seconds() * 2)

    def _unwritten(self, line: bytes) -> bytes:
        """Writes what the descriptor takes at once. Raises when it fails before the line has begun."""
        whole = left = b"\n" + line if self._is_torn else line
        try:
            while left and self._poll.poll(0):
                left = left[os.write(self._descriptor, left[:PAGE]) :]
                self._is_torn = bool(left)
        except OSError:
            if left == whole:
                raise
        return left

    def _add(self, rest: bytes) -> None:
        if not rest:
            return
        if self._is_closed or (self._waiting and self._size + len(rest) > MOST_WAITING):
            raise BlockingIOError(errno.EAGAIN, "the reader of standard output is too slow")
        self._waiting.append(rest)
        self._size += len(rest)
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_waiting, name="log output", daemon=True)
            self._thread.start()
            atexit.register(self.close)
        self._changed.notify_all()

    def _write_waiting(self) -> None:
        poll = _poll_of(self._descriptor)
        while (head := self._next()) is not None:
            try:
                if poll.poll(PATIENCE.total_seconds() * 1000) and not self._is_closed:
                    self._done(head, os.write(self._descriptor, head[:PAGE]))
            except OSError as exc:
                self._drop(exc)

    def _next(self) -> bytes | None:
        """``None`` when the output is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return None if self._is_closed else self._waiting[0]

    def _done(self, head: bytes, written: int) -> None:
        with self._changed:
            self._size -= written
            self._is_torn = written < len(head)
            if self._is_torn:
                self._waiting[0] = head[written:]
            else:
                self._waiting.popleft()
            self._changed.notify_all()

    def _drop(self, exc: OSError) -> None:
        with self._changed:
            _lost.add(len(self._waiting), {"reason": _reason(exc)})
            self._waiting.clear()
            self._size = 0
            self._changed.notify_all()


class Stream:
    """A file without a descriptor, as in tests, or no file."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def write(self, text: str) -> None:
        try:
            if self._file is None:
                raise OSError(errno.EBADF, "standard output is closed")
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError) as exc:
            _lost.add(1, {"reason": _reason(exc)})

    def flush(self) -> None:
        """Each write flushes."""


def output_of(file: TextIO | None) -> Output:
    """``None`` is a standard output that was closed before the start. Its descriptor may now belong to a connection, so
    nothing is written to it."""
    try:
        return Stream(None) if file is None else Descriptor(file.fileno())
    except (io.UnsupportedOperation, OSError, ValueError):
        return Stream(file)


def _poll_of(descriptor: int) -> "select.poll":
    """One of its own for each thread: two cannot wait with the same."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return poll


def _reason(exc: OSError | ValueError) -> str:
    return errno.errorcode.get(getattr(exc, "errno", None) or 0, "unknown")
