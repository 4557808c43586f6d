"""Print the logs of the child processes line by line, with their names in front.

The children write to files and a thread reads these, so that a blocked terminal
or pipe stops neither them nor the supervisor.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

COLORS = (36, 33, 32, 35, 34, 96, 93, 92, 95)
WIDTH = 10
EVERY = 0.05


class Console:
    def __init__(self, logs: Path, descriptor: int) -> None:
        self._logs = logs
        self._descriptor = descriptor
        self._colored = os.isatty(descriptor) and "NO_COLOR" not in os.environ
        self._read: dict[Path, int] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="console", daemon=True)

    def __enter__(self) -> "Console":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._thread.join(timeout=2)

    def _follow(self) -> None:
        with contextlib.suppress(OSError):  # the output was closed; the services continue
            while not self._closing.wait(EVERY):
                self._show_new()
            self._show_new()

    def _show_new(self) -> None:
        for log in sorted(self._logs.glob("*.log")):
            shown = "".join(f"{self._prefix(log)} {line}\n" for line in self._new_lines(log))
            if shown:
                write_all(self._descriptor, shown.encode())

    def _new_lines(self, log: Path) -> Iterator[str]:
        with log.open("rb") as file:
            file.seek(self._read.get(log, 0))
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read[log] = self._read.get(log, 0) + len(whole) + len(newline)
        return iter(whole.decode(errors="replace").splitlines() if newline else [])

    def _prefix(self, log: Path) -> str:
        text = f"{log.stem:<{WIDTH}} |"
        if not self._colored:
            return text
        color = COLORS[list(self._read).index(log) % len(COLORS)]
        return f"\x1b[{color}m{text}\x1b[0m"


def write_all(descriptor: int, text: bytes) -> None:
    """Without Python's buffers: Python would wait for a blocked one at exit."""
    while text:
        text = text[os.write(descriptor, text) :]
