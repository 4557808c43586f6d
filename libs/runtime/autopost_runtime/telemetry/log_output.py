"""Write log lines to standard output without ever blocking or raising; lines that cannot be written are counted.

A full disk or a pipe without a reader would raise or block in the middle of a request or delivery. So each line is
written directly to the descriptor with a short time limit: a writable pipe takes up to a page without blocking.
"""

import errno
import io
import os
import select
import threading
import time
from datetime import timedelta
from typing import Protocol, TextIO

from autopost_runtime.telemetry import metrics

PAGE = 4096
"""A writable pipe accepts this many bytes without blocking."""
PATIENCE = timedelta(milliseconds=500)
"""Time limit for a slow reader."""
STUCK = timedelta(seconds=30)
"""Pause before waiting again for a reader that did not read."""

_lost = metrics.counter("autopost_log_lines_lost_total", "Lost log lines by reason.")


class Output(Protocol):
    """What structlog and logging write to."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class Descriptor:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._lock = threading.Lock()
        self._rest = b""
        """The unwritten end of a line; it is written before the next line, so that lines do not merge."""
        self._no_wait_until = float("-inf")

    def write(self, text: str) -> None:
        with self._lock:
            try:
                self._rest = self._written(self._rest)
                if self._rest:
                    raise BlockingIOError(errno.EAGAIN, "the previous line is still being written")
                self._rest = self._written(text.encode("utf-8", "backslashreplace"))
            except OSError as exc:
                _lost.add(1, {"reason": _reason(exc)})

    def flush(self) -> None:
        """There is no buffer."""

    def _written(self, line: bytes) -> bytes:
        """The unwritten rest of the line. Raises when nothing of it was written."""
        left = line
        try:
            while left:
                self._wait()
                left = left[os.write(self._descriptor, left[:PAGE]) :]
        except OSError:
            if left == line:
                raise
        return left

    def _wait(self) -> None:
        wait = 0.0 if time.monotonic() < self._no_wait_until else PATIENCE.total_seconds()
        if not self._poll.poll(wait * 1000):
            self._no_wait_until = time.monotonic() + STUCK.total_seconds()
            raise BlockingIOError(errno.EAGAIN, "the reader of standard output is gone")


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


def _reason(exc: OSError | ValueError) -> str:
    return errno.errorcode.get(getattr(exc, "errno", None) or 0, "unknown")
