"""Whether slots and arrivals keep to a rate: two questions, each asked of every window there is."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import floor

TOLERANCE = 0.05
ROUNDING = 1e-5
"""Slots are kept to the microsecond."""


def too_close(slots: Sequence[float], step: float, tolerance: float = TOLERANCE) -> int:
    """How many slots end a run of n + 1 that spans less than n · step − tolerance, for any n.

    How far a slot is ahead of the rate is n · step − slot; no later one may be further ahead than any earlier one by
    more than the tolerance, so it is enough to remember the least so far.
    """
    found, least = 0, float("inf")
    for number, slot in enumerate(sorted(slots)):
        ahead = number * step - slot
        found += ahead - least > tolerance + ROUNDING
        least = min(least, ahead)
    return found


def over_limit(arrivals: Sequence[float], limit: int, window: float = 1.0) -> int:
    """How many arrivals are one too many in the window that ends with them."""
    ordered = sorted(arrivals)
    return sum(late - early < window for early, late in zip(ordered, ordered[limit:], strict=False))


def use(gates: Iterable[Sequence[float]], rate: float, since: float, until: float) -> float:
    """What came through gates of one rate as a part of what could have come, all of them to the end of the time.

    The time of a gate begins with its first arrival, at the latest at ``since``: one that stops early or never starts
    shows.
    """
    came, could = 0, 0
    for arrivals in gates:
        begun = min((since, *arrivals))
        came += sum(arrival <= until for arrival in arrivals)
        could += 1 + floor((until - begun) * rate)
    return came / could


def by_key(pairs: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    grouped: dict[str, list[float]] = defaultdict(list)
    for key, value in pairs:
        grouped[key].append(value)
    return grouped
