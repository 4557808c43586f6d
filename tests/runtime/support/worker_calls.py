"""Functions for worker processes in tests."""

import os
import time
from pathlib import Path

import msgspec


class Sum(msgspec.Struct, frozen=True):
    numbers: tuple[int, ...]


class Added(msgspec.Struct, frozen=True):
    total: int
    pid: int


def add(question: Sum) -> Added:
    return Added(total=sum(question.numbers), pid=os.getpid())


def spin(path: str) -> int:
    """Never returns by itself, and says who spins."""
    if path:
        Path(path).write_text(str(os.getpid()))
    while True:
        pass


def hold_the_gil(size: int) -> int:
    """One call of C code that lets no other thread of its process run."""
    return len(str(7**size))


def fill_memory(size: int) -> int:
    return len(bytearray(size))


def fail(message: str) -> int:
    raise ValueError(message)


def environment(_: str) -> dict[str, str]:
    return dict(os.environ)


def meet(folder: str) -> float:
    """Waits until somebody else wrote into the folder, too, without using its CPU time."""
    Path(folder, str(os.getpid())).touch()
    while len(list(Path(folder).iterdir())) < 2:
        time.sleep(0.01)
    return 0.0
