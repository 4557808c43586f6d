"""How the CPU time of a function grows with its input."""

import gc
from collections.abc import Callable
from contextlib import suppress
from time import process_time
from typing import TypeVar

Input = TypeVar("Input")

MOST = 2.5
"""Times as long for an input of twice the size: a little over linear, far below quadratic."""
UNNOTICEABLE = 0.05
"""Seconds at the size limit, as long as an event loop may be held. Below it caches and page faults decide."""
HOPELESS = 0.5
"""For an eighth of the size: all of it could take minutes."""
RUNS = 12


def growth(function: Callable[[Input], object], make: Callable[[int], Input], size: int) -> float:
    """Of the time at ``size`` over the time at half of it; 0 where both are too short to be told from noise.

    Others use the machine too: the least of several runs counts, and there are more runs only while it looks bad.
    """
    if _seconds(function, make(size // 8)) > HOPELESS:
        return float("inf")
    half, whole = make(size // 2), make(size)
    short = long = float("inf")
    for _ in range(RUNS):
        short, long = min(short, _seconds(function, half)), min(long, _seconds(function, whole))
        if long < UNNOTICEABLE:
            return 0
        if long <= MOST * short:
            break
    return long / short


def assert_linear(function: Callable[[Input], object], make: Callable[[int], Input], size: int) -> None:
    times = growth(function, make, size)

    assert times <= MOST, f"{times:.2f} times the CPU time for twice the input ({size})"


def _seconds(function: Callable[[Input], object], given: Input) -> float:
    """An input may be refused; that takes its time, too."""
    gc.disable()
    begun = process_time()
    try:
        with suppress(Exception):
            function(given)
        return process_time() - begun
    finally:
        gc.enable()
