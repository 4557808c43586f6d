"""Which calls are under way, and which rate groups get no answers.

What a platform that is away means for the queue is decided in the database, by the outcomes of all replicas
(``settle_circuits``). This is what one process knows earlier: calls that hang have no outcome yet, and what it has in
hand was claimed before the outcomes that open the circuit.
"""

import time
from collections.abc import Iterator
from itertools import count
from uuid import UUID

from autopost_adapters.base import AcceptedPart
from autopost_contracts.ids import DeliveryId
from autopost_contracts.outcomes import Failed
from msgspec import Struct, field

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.gateway import Claim

OPENS_AT = 3
"""Distinct deliveries without an answer; the same number as in ``settle_circuits``."""

Group = tuple[UUID, str, str]


class GroupCalls(Struct):
    """Of one rate group."""

    running: dict[int, float] = field(default_factory=dict)
    """By the number of the call, when it began; the oldest first. Uploads of bytes are left out, they take long."""
    answered_at: float = 0.0
    silent: set[DeliveryId] = field(default_factory=set)
    """Deliveries that got no answer since the last one that did; at most ``OPENS_AT``."""
    away_since: float | None = None


class Calls:
    def __init__(self) -> None:
        self._groups: dict[Group, GroupCalls] = {}
        self._numbers = count()

    def begin(self, claim: Claim, *, has_bytes: bool = False) -> int:
        """``end`` must follow, with the number that this returns."""
        number = next(self._numbers)
        group = self._groups.get(claim.group)
        if group is None:
            group = self._groups[claim.group] = GroupCalls()
        if not has_bytes:
            group.running[number] = time.monotonic()
        return number

    def end(self, claim: Claim, number: int, answer: AcceptedPart | Failed | None) -> None:
        """``None``: the platform answered that there is nothing."""
        key = claim.group
        group = self._groups.get(key) or GroupCalls()
        group.running.pop(number, None)
        if not isinstance(answer, Failed) or answer.answered:
            group.answered_at, group.away_since = time.monotonic(), None
            group.silent.clear()
            if not group.running:
                self._groups.pop(key, None)
        elif answer.is_silence and len(group.silent) < OPENS_AT:
            group.silent.add(claim.delivery_id)
            if len(group.silent) == OPENS_AT:
                group.away_since = time.monotonic()

    def forget(self, claim: Claim, number: int) -> None:
        """The call was cancelled: nobody knows what became of it."""
        if group := self._groups.get(claim.group):
            group.running.pop(number, None)

    def is_away(self, job: SendJob) -> bool:
        """Whether it was claimed before the platform stopped answering: then it goes back into the queue.

        What is claimed later is the database's decision, and a trial is what finds out.
        """
        group = self._groups.get(job.claim.group)
        if group is None or group.away_since is None or job.is_trial:
            return False
        return job.asked_at < group.away_since

    def hanging(self, seconds: float) -> Iterator[Group]:
        """The groups whose oldest call has no answer for so long, and that got no other answer since it began."""
        since = time.monotonic() - seconds
        for key, group in self._groups.items():
            oldest = next(iter(group.running.values()), None)
            if oldest is not None and oldest < since and group.answered_at < oldest:
                yield key
