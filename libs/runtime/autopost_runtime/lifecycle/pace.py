"""Pace calls: each at its slot, and not much later.

The database spaces slots, but a process may stall between the claim and the call. Its delayed calls would then go out
all at once, and the provider counts arrivals, not slots. So calls of one token keep the intervals of their slots here
too and catch up slowly. A call that is far behind its slot needs another slot.
"""

import time
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

RateGroup = tuple[UUID, str, str]
"""Workspace, platform and group: calls that the platform counts together."""

HEAD_ROOM = 1 / 0.9 - 1
"""Seconds. Rates are set to nine tenths of the platform's limit of n calls per second. So n + 1 slots span at least
this much more than a second: 1.11 s for a rate of 0.9 (n = 1), and for 27 (n = 30) as well. Slower rates have more."""
LATE = 0.45 * HEAD_ROOM
"""Seconds after its slot when a call has missed it. A claim may grant slots up to 0.05 s in the past.

Calls that are this late, each from another replica, still keep the limit together with calls that are on time. The
larger half of the head room is for the way to the platform: opening a connection, a busy machine. With two thirds of it
as lateness, one of 8,321 calls arrived 0.992 s after the previous one."""
CATCH_UP = 0.98
"""The fraction of the interval between two slots that delayed calls keep."""
FINE = 0.001
"""Seconds. Smaller intervals are not paced."""
KEPT = 2 * LATE / (1 - CATCH_UP)
"""Seconds. After half of it no call waits for that one any more: one that was late is caught up with."""

Key = TypeVar("Key")


class PacedCall(Struct, frozen=True):
    group: RateGroup
    place: tuple[UUID, UUID | str]
    """The workspace and the channel or chat; the platform counts its calls apart from those of the group."""
    interval: float
    """Seconds between two calls of the group and of the place at the least; 0 without a rate."""


class CallPacer:
    def __init__(self) -> None:
        self._last: dict[RateGroup, tuple[float, float]] = {}
        """By rate group: the slot of its last call, and the time of that call."""
        self._last_in: dict[tuple[UUID, UUID | str], tuple[float, float]] = {}
        """The same by place; after an upload, the first slot and time that count from its end."""
        self._cleaned_at = time.monotonic()

    def wait(self, call: PacedCall, slot: float) -> float | None:
        """Seconds to wait before the call; ``None`` when it has missed its slot.

        Reserves the returned time, so call it only once the slot has come.
        """
        if call.interval < FINE:
            return 0.0
        now = time.monotonic()
        at = max(now, _after(self._last.get(call.group), slot), _after(self._last_in.get(call.place), slot))
        if at - slot > LATE:
            return None
        self._last[call.group] = (max(slot, self._last.get(call.group, (slot, at))[0]), at)
        self._last_in[call.place] = (slot, at)
        if now - self._cleaned_at > KEPT:
            self._clean(now)
        return at - now

    def uploaded(self, call: PacedCall) -> None:
        """The platform counts a call with media from its end, so slots given during the upload are too early."""
        end, step = time.monotonic(), call.interval
        self._last_in[call.place] = (end + step, end + step * CATCH_UP)

    def _clean(self, now: float) -> None:
        """Without it every channel and chat that ever was would be kept."""
        self._last, self._last_in = _since(self._last, now - KEPT), _since(self._last_in, now - KEPT)
        self._cleaned_at = now


def _since(calls: dict[Key, tuple[float, float]], time: float) -> dict[Key, tuple[float, float]]:
    return {key: call for key, call in calls.items() if call[1] >= time}


def _after(last: tuple[float, float] | None, slot: float) -> float:
    """The earliest time that keeps the interval to the last call."""
    if last is None:
        return 0.0
    last_slot, last_at = last
    return last_at + max(slot - last_slot, 0.0) * CATCH_UP


def has_missed(interval: float, slot: float) -> bool:
    """Whether it is too late for a call in this slot; always false without a rate."""
    return interval >= FINE and time.monotonic() - slot > LATE
