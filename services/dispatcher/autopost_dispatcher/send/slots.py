"""Wait for the slot of each call of a delivery, within the lease and until the service stops."""

import asyncio
import time
from collections.abc import Awaitable
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from autopost_runtime.lifecycle.pace import FINE, CallPacer, PacedCall, has_missed
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct

from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.gateway import Claim, SlotGrant
from autopost_dispatcher.send.calls import Calls
from autopost_dispatcher.send.end_delivery import EndDelivery, Released

SHORT = 0.1
"""Seconds. A stop takes longer than such a pause anyway."""
TRIES = 5
"""Slots that a call may miss before its delivery is released: this process is too slow."""
PATIENCE = 5.0
"""The longest wait of a claimed delivery for a slot, in seconds; for a longer one, after a 429, it is released."""
KNOWN_AFTER = 5.0
"""Seconds after which the database knows the cooldown. A later claim means that the database allows the call, or that
an operator ended the cooldown. Without this, deliveries would be claimed and released until the cooldown ends."""


class SlotSource(Protocol):
    async def take_slot(self, claim: Claim, *, group_only: bool, missed: float | None) -> SlotGrant | None: ...

    async def end_upload(self, claim: Claim) -> None: ...


class Slot(Struct, frozen=True):
    at: float
    """By the monotonic clock of this process."""
    database_time: float
    """By the clock of the database."""


class Cooldown(Struct, frozen=True):
    """By the monotonic clock of this process."""

    since: float
    until: float


class Slots:
    def __init__(self, gates: SlotSource, stopping: asyncio.Event, calls: Calls) -> None:
        self._gates = gates
        self._calls = calls
        self._stopping = stopping
        self._pace = CallPacer()
        self._cooldowns: dict[tuple[UUID, str, str], Cooldown] = {}
        """By rate group: the wait that the platform requested."""
        self.missed = 0
        """How many slots passed before their call could be made."""

    def cool(self, claim: Claim, wait: timedelta) -> None:
        """Stop calls of the rate group for the requested time. Other processes learn it from the commit."""
        group, now = claim.group, time.monotonic()
        until = now + wait.total_seconds()
        if group in self._cooldowns:
            until = max(until, self._cooldowns[group].until)
        self._cooldowns[group] = Cooldown(now, until)

    def is_now(self, job: SendJob, call_time: float) -> bool:
        """Whether the first call may be made at once: its slot has come, and its rate needs no pacing."""
        if job.claim.channel.pace >= FINE or job.slot_at > time.monotonic():
            return False
        self.check(job, call_time)
        return True

    def first(self, job: SendJob, call_time: float) -> Awaitable[None]:
        """Returns when the call may be made, in the slot of the claim if that was not missed."""
        return self._wait_for(job, Slot(job.slot_at, job.claim.slot), call_time, group_only=False)

    async def next(self, job: SendJob, call_time: float, *, group_only: bool = False) -> None:
        """As ``first``, for a later call. ``group_only``: the call does not post into the chat."""
        if not group_only:
            await self.pause(job.claim.channel.pace)
        await self._wait_for(job, await self._take(job, group_only), call_time, group_only)

    async def uploaded(self, claim: Claim) -> None:
        """Record the end of an upload: the platform counts the call now, so intervals start now."""
        self._pace.uploaded(_paced(claim))
        try:
            await self._gates.end_upload(claim)
        except Exception as exc:  # the accepted call counts, with or without this record
            get_logger().warning("upload.end_unknown", error=type(exc).__name__, delivery_id=str(claim.delivery_id))

    async def pause(self, seconds: float) -> None:
        """Ends early when the service stops; a short one does not, because a timer alone costs a third as much."""
        if 0 < seconds <= SHORT:
            await asyncio.sleep(seconds)
        elif seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
            except TimeoutError:
                return

    def check(self, job: SendJob, call_time: float = 0.0) -> None:
        """Raises ``EndDelivery`` when the call must not be made."""
        if job.lease.is_lost:
            raise EndDelivery(None)
        if job.lease.left() < call_time or self._stopping.is_set() or (self._cooldowns and self._is_cooled(job)):
            raise EndDelivery(Released())
        if self._calls.is_away(job):
            raise EndDelivery(Released())

    def _is_cooled(self, job: SendJob) -> bool:
        group = job.claim.group
        cooldown = self._cooldowns.get(group)
        if cooldown is None:
            return False
        if cooldown.until <= time.monotonic():
            del self._cooldowns[group]
            return False
        return job.asked_at < cooldown.since + KNOWN_AFTER

    async def _wait_for(self, job: SendJob, slot: Slot, call_time: float, group_only: bool) -> None:
        for _ in range(TRIES):
            ahead = slot.at - time.monotonic()
            if ahead > 0:
                await self.pause(ahead)
            wait = self._pace.wait(_paced(job.claim), slot.at)
            if wait is not None:
                if wait > 0:
                    await self.pause(wait)
                self.check(job, call_time)
                if not has_missed(job.claim.channel.pace, slot.at):  # the process may have stalled during the wait
                    return
            self.missed += 1
            slot = await self._take(job, group_only, missed=slot)
        raise EndDelivery(Released())

    async def _take(self, job: SendJob, group_only: bool, missed: Slot | None = None) -> Slot:
        database_time = missed.database_time if missed else None
        while given := await self._gates.take_slot(job.claim, group_only=group_only, missed=database_time):
            if given.taken:
                return Slot(time.monotonic() + given.wait, given.slot)
            if given.wait > PATIENCE:
                raise EndDelivery(Released())
            await self.pause(given.wait)
            self.check(job)
        raise EndDelivery(None)


def _paced(claim: Claim) -> PacedCall:
    return PacedCall(claim.group, (claim.workspace_id, claim.channel_id), claim.channel.pace)
