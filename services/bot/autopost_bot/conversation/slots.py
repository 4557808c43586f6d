"""Wait for the slot of each call of a reply, within the lease and until the service stops."""

import asyncio
import time
from datetime import timedelta

from autopost_runtime.lifecycle.pace import CallPacer, has_missed

from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.silence import Silences
from autopost_bot.conversation.taken import ReplyJob, Slot

PATIENCE = timedelta(seconds=5)
"""The longest wait for a slot; for a longer one the chat is given back."""
TRIES = 5
"""Slots that a call may miss before its chat is given back: this process is too slow."""


class GiveBack(Exception):  # noqa: N818  named for what happened
    """The reply must not be sent now; it was not. ``after``: when to look again."""

    def __init__(self, after: timedelta = timedelta()) -> None:
        self.after = after


class LeaseLost(Exception):  # noqa: N818  named for what happened
    """Another worker has the chat: there is nothing to record."""


class ReplySlots:
    def __init__(
        self, gateway: ConversationGateway, stopping: asyncio.Event, silences: Silences, call_time: timedelta
    ) -> None:
        self._gateway = gateway
        self._stopping = stopping
        self._silences = silences
        self._call_time = call_time.total_seconds()
        self._pacer = CallPacer()

    async def wait(self, job: ReplyJob, slot: Slot | None = None, *, beside: bool = False) -> None:
        """Returns when the call may be made. Without a slot, one is taken."""
        slot = slot or await self._take(job, beside)
        for _ in range(TRIES):
            await self._pause(slot.at - time.monotonic())
            wait = self._pacer.wait(job.paced, slot.at)
            if wait is not None:
                await self._pause(wait)
                self.check(job)
                if not has_missed(job.bot.pace, slot.at):
                    return
            slot = await self._take(job, beside, missed=slot)
        raise GiveBack

    def check(self, job: ReplyJob) -> None:
        """Raises when the call must not be made."""
        if job.chat.lease.is_lost:
            raise LeaseLost
        if job.chat.lease.left() < self._call_time or self._stopping.is_set() or self._silences.is_away(job):
            raise GiveBack

    async def _take(self, job: ReplyJob, beside: bool, missed: Slot | None = None) -> Slot:
        before = missed.database_time if missed else None
        while True:
            self.check(job)
            given = await self._gateway.take_reply_slot(job.chat, beside=beside, missed=before, patience=PATIENCE)
            if given is None:
                raise LeaseLost
            if given.taken:
                return Slot(time.monotonic() + given.wait.total_seconds(), given.slot_at)
            if given.wait > PATIENCE:
                raise GiveBack(given.wait)
            await self._pause(given.wait.total_seconds())

    async def _pause(self, seconds: float) -> None:
        """Ends early when the service stops."""
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
