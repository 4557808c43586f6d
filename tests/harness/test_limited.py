"""The limit on every test strikes wherever a test waits."""

import asyncio
import signal
import threading

import pytest

from harness.limited import AGAIN, limited


def test_one_that_blocks_is_ended_and_named() -> None:
    with pytest.raises(TimeoutError, match=r"stuck took more than 0\.01 s"), limited("stuck", 0.01):
        threading.Event().wait()


def test_one_whose_loop_waits_for_ever_is_ended() -> None:
    with pytest.raises(TimeoutError, match="stuck"), limited("stuck", 0.01):
        asyncio.run(asyncio.Event().wait())


def test_the_limit_around_it_goes_on() -> None:
    with limited("inner", 60):
        pass

    left, again = signal.getitimer(signal.ITIMER_REAL)
    assert left > 60
    assert again == AGAIN
