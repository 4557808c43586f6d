"""A test that hangs fails, and says where, instead of holding up all others for ever."""

import faulthandler
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LONGEST = 480.0
AGAIN = 30.0
"""What is torn down afterwards may hang as well."""


@contextmanager
def limited(name: str, seconds: float = LONGEST) -> Iterator[None]:
    """In the main thread, which is where tests run; by a signal, so it strikes wherever they wait."""

    def over(_: int, __: FrameType | None) -> None:
        faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
        raise TimeoutError(f"{name} took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, before)
