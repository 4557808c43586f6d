"""Rate limits with sliding windows, per token and per chat.

Only accepted requests count. A refused request takes no slot, so a client that
waits for exactly the returned time finds a free one.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Annotated

import msgspec

from autopost_simulator.clock import Clock

NANOSECONDS = 1_000_000_000


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most ``count`` within any ``per`` seconds."""

    count: Annotated[int, msgspec.Meta(ge=0)]
    per: Annotated[float, msgspec.Meta(gt=0)]


class Windows:
    """The calls within the window, by key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hits: dict[tuple[Hashable, Limit], deque[int]] = {}

    def take(self, *bounds: tuple[Hashable, Iterable[Limit]]) -> int:
        """Seconds to wait, rounded up; 0 when a slot was taken in every window, all or none."""
        now = self._clock.monotonic_ns()
        windows = [(limit, self._window(key, limit, now)) for key, limits in bounds for limit in limits]
        wait = max((_wait(limit, hits, now) for limit, hits in windows), default=0)
        if wait:
            return -(-wait // NANOSECONDS)
        for _, hits in windows:
            hits.append(now)
        return 0

    def clear(self) -> None:
        self._hits.clear()

    def _window(self, key: Hashable, limit: Limit, now: int) -> deque[int]:
        hits = self._hits.setdefault((key, limit), deque())
        oldest = now - int(limit.per * NANOSECONDS)
        while hits and hits[0] <= oldest:
            hits.popleft()
        return hits


def _wait(limit: Limit, hits: deque[int], now: int) -> int:
    if len(hits) < limit.count:
        return 0
    span = int(limit.per * NANOSECONDS)
    return span if limit.count == 0 else hits[-limit.count] + span - now
