"""When a call may really go out: at its slot, and not much later.

The database spaces slots; what it cannot see is a worker that is held up between the claim and the call. Calls that
pile up meanwhile would leave at once, and the provider counts arrivals, not slots. So the calls of one token keep the
distance of their slots here as well: who is behind stays behind, and catches up little by little. A call that has
missed its slot by far needs another.
"""

import time
from uuid import UUID

from autopost_dispatcher.gateway import Claim

LATE = 0.075
"""Seconds behind its slot after which a call has missed it. A claim gives slots up to 0.05 s old.

Rates are set to nine tenths of what a platform allows. Calls that are late by so much, each from another replica, then
still fit into any second beside those that are not, 27 and 2 of 30; what is left, a thirtieth of a second, is for the
way there: a connection to be opened, a busy machine."""
CATCH_UP = 0.98
"""Of the distance between two slots: what is kept between their calls while they are behind."""
FINE = 0.001
"""Distances below are no rate worth keeping."""


class Pace:
    def __init__(self) -> None:
        self._last: dict[tuple[UUID, str, str], tuple[float, float]] = {}
        """By token group: the slot of its last call, and when that went out."""

    def wait(self, claim: Claim, slot: float) -> float | None:
        """At its slot or later: seconds to wait before the call, ``None`` when it has missed its slot.

        Whoever asks takes the time it is given, so ask only when the slot has come.
        """
        if claim.channel.pace < FINE:
            return 0.0
        now = time.monotonic()
        group = group_of(claim)
        last_slot, last_at = self._last.get(group, (slot, 0.0))
        at = max(now, last_at + max(slot - last_slot, 0.0) * CATCH_UP)
        if at - slot > LATE:
            return None
        self._last[group] = (max(slot, last_slot), at)
        return at - now


def has_missed(claim: Claim, slot: float) -> bool:
    """Whether it is too late by now for a call that had this slot; without a rate nothing is."""
    return claim.channel.pace >= FINE and time.monotonic() - slot > LATE


def group_of(claim: Claim) -> tuple[UUID, str, str]:
    """Whose calls the platform counts together."""
    return (claim.workspace_id, claim.channel.platform, claim.channel.rate_group)
