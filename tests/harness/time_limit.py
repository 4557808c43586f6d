"""Fail tests that hang, with a traceback, instead of blocking the whole run.

First a signal raises a ``BaseException`` in the waiting Python code. If the code never returns to Python, the process
is killed: xdist reports the test as failed and continues with another worker.
"""

import faulthandler
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

LONGEST = 180.0
"""For a test with nothing to say about it; ``@pytest.mark.time_limit(480)`` says something."""
AGAIN = 30.0
"""What is torn down afterwards may hang as well."""
GRACE = 90.0
"""So long after the signal the process is ended, if the test still goes on."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "time_limit(seconds, grace=90): when a test that has not ended is taken to hang")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    marker = item.get_closest_marker("time_limit")
    seconds = marker.args[0] if marker else LONGEST
    with limited(item.nodeid, seconds, **(marker.kwargs if marker else {})):
        return (yield)


@contextmanager
def limited(name: str, seconds: float = LONGEST, *, grace: float = GRACE) -> Iterator[None]:
    """In the main thread, which is where tests run; by a signal, so it strikes wherever they wait."""

    def over(_: int, __: FrameType | None) -> None:
        faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
        pytest.fail(f"{name} took more than {seconds:g} s", pytrace=False)

    before = signal.signal(signal.SIGALRM, over)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    started = time.monotonic()
    _end_process_in(seconds + grace)
    try:
        yield
    finally:
        left = max(outer[0] - (time.monotonic() - started), 0.001) if outer[0] else 0.0
        signal.setitimer(signal.ITIMER_REAL, left, outer[1])
        signal.signal(signal.SIGALRM, before)
        _end_process_in(left + GRACE if left else None)


def _end_process_in(seconds: float | None) -> None:
    """By a thread that needs no Python."""
    faulthandler.cancel_dump_traceback_later()
    if seconds is not None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
