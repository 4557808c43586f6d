"""Two sides in turns: one, other, other, one.

A machine that grows slower, or is disturbed for a while, then does it to both.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from statistics import harmonic_mean

from autopost_bench.report.figures import Figures

TURNS_EACH = 2

Side = Callable[[], Awaitable[dict[str, float]]]
"""One turn, with a half of the count: rates by name."""


async def in_turns(figures: Figures, one: Side, other: Side) -> None:
    rates: dict[str, list[float]] = defaultdict(list)
    for side in (one, other, other, one):
        for name, rate in (await side()).items():
            rates[name].append(rate)
    for name, found in rates.items():
        figures.record(name, harmonic_mean(found))  # as many in each turn: all of them by all the time they took
