"""Wait for the slot of each call of a reply, within the lease and until the service stops."""

import asyncio
import time
from collections import Counter
from collections.abc import Collection
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.pace import CallPacer, has_missed
from autopost_runtime.postgres.batches import Batches

from autopost_bot.conversation.gateway import ConversationGateway, ReplySlot, SlotRequest
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
        self._waiting = Counter[WorkspaceId]()
        self._batches = Batches(self._call, key=_chat_of, holder=_workspace_of)

    @property
    def waiting(self) -> Collection[WorkspaceId]:
        """Where a reply waits for its slot."""
        return self._waiting.keys()

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
        """A reply that was told when to ask comes after those that were told an earlier time."""
        before = missed.database_time if missed else None
        request = SlotRequest(job.chat, beside, before, job.granted_at)
        workspace = job.chat.workspace_id
        self._waiting[workspace] += 1
        try:
            await self._pause(job.ask_at - time.monotonic())
            return await self._asked(job, request)
        finally:
            self._waiting[workspace] -= 1
            if not self._waiting[workspace]:
                del self._waiting[workspace]

    async def _asked(self, job: ReplyJob, request: SlotRequest) -> Slot:
        while True:
            self.check(job)
            given = await self._batches.ask(request)
            if given is None:
                raise LeaseLost
            wait = given.wait.total_seconds()
            if given.taken:
                return Slot(time.monotonic() + wait, given.slot_at)
            if given.wait > PATIENCE:
                raise GiveBack(given.wait)
            await self._pause(wait)

    async def _call(self, requests: list[SlotRequest]) -> list[ReplySlot | None]:
        """Who has waited longest is asked for first."""
        order = sorted(range(len(requests)), key=lambda place: requests[place].since)
        given = await self._gateway.take_reply_slots([requests[place] for place in order], PATIENCE)
        found = dict(zip(order, given, strict=True))
        return [found[place] for place in range(len(requests))]

    async def _pause(self, seconds: float) -> None:
        """Ends early when the service stops."""
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return


def _chat_of(request: SlotRequest) -> tuple[WorkspaceId, str]:
    return request.chat.workspace_id, request.chat.chat_id


def _workspace_of(request: SlotRequest) -> WorkspaceId:
    return request.chat.workspace_id
