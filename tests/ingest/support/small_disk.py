"""A full disk: no file of this process can grow."""

from collections.abc import Iterator
from contextlib import contextmanager
from resource import RLIMIT_FSIZE, getrlimit, setrlimit


@contextmanager
def small_disk(room: int) -> Iterator[None]:
    before = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        setrlimit(RLIMIT_FSIZE, before)
