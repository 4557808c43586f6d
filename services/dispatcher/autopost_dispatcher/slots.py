"""When the calls of a delivery may go out: each in a slot of its own, inside the lease, until the order to stop."""

import asyncio
import time
from collections.abc import Awaitable
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from autopost_dispatcher.claim import Job
from autopost_dispatcher.gateway import Claim, Given
from autopost_dispatcher.over import Over, Released
from autopost_dispatcher.pace import FINE, Pace, group_of, has_missed

TRIES = 5
"""Slots that a call may miss before it is given back: then this worker is too slow for anything."""
PATIENCE = 5.0
"""Seconds that a delivery waits in our hands for a slot; a longer wait, after a provider's 429, is the queue's."""


class Gates(Protocol):
    async def take_slot(self, claim: Claim, *, beside: bool, missed: float | None) -> Given | None: ...


class Slot(Struct, frozen=True):
    at: float
    """By our own clock."""
    told: float
    """As the database knows it."""


class Slots:
    def __init__(self, gates: Gates, stopping: asyncio.Event) -> None:
        self._gates = gates
        self._stopping = stopping
        self._pace = Pace()
        self._cooled: dict[tuple[UUID, str, str], float] = {}
        """By token group: until when the platform wants to hear nothing."""

    def cool(self, claim: Claim, wait: timedelta) -> None:
        """The platform asked for this. Whoever is about to call with the token hears it now, others by the queue."""
        group = group_of(claim)
        until = time.monotonic() + wait.total_seconds()
        self._cooled[group] = max(until, self._cooled.get(group, 0.0))

    def is_now(self, job: Job, call_time: float) -> bool:
        """Whether the first call may go out at once: nothing is to be waited for, and its token keeps no distance."""
        if job.claim.channel.pace >= FINE or job.slot_at > time.monotonic():
            return False
        self.check(job, call_time)
        return True

    def first(self, job: Job, call_time: float) -> Awaitable[None]:
        """Returns when the call may go out, in the slot that came with the claim if that was not missed."""
        return self._come(job, Slot(job.slot_at, job.claim.slot), call_time, beside=False)

    async def next(self, job: Job, call_time: float, *, beside: bool = False) -> None:
        """As ``first``, for a call after it. ``beside``: one that puts nothing into the chat."""
        if not beside:
            await self.pause(job.claim.channel.pace)
        await self._come(job, await self._take(job, beside), call_time, beside)

    async def pause(self, seconds: float) -> None:
        """Not beyond the order to stop."""
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
            except TimeoutError:
                return

    def check(self, job: Job, call_time: float = 0.0) -> None:
        """Unless there is time for the call, it must not be made."""
        if job.lease.is_lost:
            raise Over(None)
        if job.lease.left() < call_time or self._stopping.is_set() or (self._cooled and self._is_cooled(job.claim)):
            raise Over(Released())

    def _is_cooled(self, claim: Claim) -> bool:
        group = group_of(claim)
        until = self._cooled.get(group)
        if until is not None and until <= time.monotonic():
            del self._cooled[group]
        return group in self._cooled

    async def _come(self, job: Job, slot: Slot, call_time: float, beside: bool) -> None:
        for _ in range(TRIES):
            ahead = slot.at - time.monotonic()
            if ahead > 0:
                await self.pause(ahead)
            wait = self._pace.wait(job.claim, slot.at)
            if wait is not None:
                if wait > 0:
                    await self.pause(wait)
                self.check(job, call_time)
                if not has_missed(job.claim, slot.at):  # the whole process may have stood still meanwhile
                    return
            slot = await self._take(job, beside, missed=slot)
        raise Over(Released())

    async def _take(self, job: Job, beside: bool, missed: Slot | None = None) -> Slot:
        told = missed.told if missed else None
        while given := await self._gates.take_slot(job.claim, beside=beside, missed=told):
            if given.taken:
                return Slot(time.monotonic() + given.wait, given.slot)
            if given.wait > PATIENCE:
                raise Over(Released())
            await self.pause(given.wait)
            self.check(job)
        raise Over(None)
