"""Take chats of all workspaces that have some, in one call, and let the engine decide their turns.

A worker that dies before the commit of a turn has decided nothing: its chats are taken again when their leases end.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.set_aside import SetAside, error_name
from autopost_runtime.postgres.pool import is_away
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.conversation.decided import Decided, decide_chat, pending_job
from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.lease import ChatLeases
from autopost_bot.conversation.rulesets import NoBot, Rulesets
from autopost_bot.conversation.schedule import ChatSchedule
from autopost_bot.conversation.taken import Bot, ReplyJob, TakenChat

WORKSPACES, CHATS = 64, 200
"""The most that one take has: what it brings is decided before the next one of this taker."""

Taken = dict[WorkspaceId, list[TakenChat]]


class Taker:
    def __init__(
        self,
        gateway: ConversationGateway,
        schedule: ChatSchedule,
        rulesets: Rulesets,
        leases: ChatLeases,
        aside: SetAside,
        *,
        send: Callable[[ReplyJob], None],
        handle: Callable[[Decided], "asyncio.Future[None]"],
        stopping: asyncio.Event,
        lease: timedelta,
        limit: int,
        most: int,
        most_of_one: int,
    ) -> None:
        """``handle``: done when the turn is committed, or refused."""
        self._gateway = gateway
        self._schedule = schedule
        self._rulesets = rulesets
        self._leases = leases
        self._aside = aside
        self._send = send
        self._handle = handle
        self._stopping = stopping
        self._lease = lease
        self._limit = limit
        self._most = most
        self._most_of_one = most_of_one

    async def run(self) -> None:
        while batch := await self._schedule.next_batch(WORKSPACES):
            limits = await self._limits([one for one in batch if not self._aside.left(one)])
            if limits:
                await self._take(limits)

    async def _limits(self, workspaces: Sequence[WorkspaceId]) -> dict[WorkspaceId, int]:
        """Each gets the same share of the room that this process has; it waits until there is some."""
        while (room := min(CHATS, self._most - self._leases.count)) < 1 and not self._stopping.is_set():
            await self._leases.dropped()
        for workspace in workspaces[room:]:
            self._schedule.wake(workspace)
        limits = {}
        for workspace in workspaces[:room]:
            left = self._most_of_one - self._leases.count_of(workspace)
            if left > 0:
                limits[workspace] = min(left, self._limit, max(1, room // len(workspaces)))
            else:
                self._schedule.is_full(workspace)
        return limits

    async def _take(self, limits: dict[WorkspaceId, int]) -> None:
        try:
            rows = await self._gateway.take_chats(list(limits), list(limits.values()), self._lease)
        except Exception as exc:
            await self._failed(limits, exc)
            return
        taken: Taken = defaultdict(list)
        for one in rows:
            taken[one.chat.workspace_id].append(one)
            self._leases.hold(one.chat)
        for workspace, chats in taken.items():
            if len(chats) == limits[workspace] or any(one.takes > 1 for one in chats):
                self._schedule.wake(workspace)  # of chats that were lost before, each take has one
        await self._hand_over(taken)

    async def _failed(self, limits: dict[WorkspaceId, int], exc: Exception) -> None:
        """Who is to blame is set aside, and the others are served. The poll finds them when the database is back."""
        if is_away(exc):
            get_logger().warning("take.failed", workspaces=len(limits), error=error_name(exc))
        elif len(limits) == 1:
            await self._aside.failed(next(iter(limits)), exc)
        else:
            both = list(limits.items())
            for half in (both[: len(both) // 2], both[len(both) // 2 :]):
                await self._take(dict(half))

    async def _hand_over(self, taken: Taken) -> None:
        bots = await asyncio.gather(*(self._bot(workspace, chats) for workspace, chats in taken.items()))
        turns: list[asyncio.Future[None]] = []
        lost: list[tuple[TakenChat, Bot]] = []
        for chats, bot in zip(taken.values(), bots, strict=True):
            if bot is None:
                continue
            for one in chats:
                if one.reply is not None:
                    self._send(pending_job(one, bot))
                elif one.takes == 1:
                    turns.append(self._handle(decide_chat(one, bot)))
                else:
                    lost.append((one, bot))
            await asyncio.sleep(0)
        if lost and turns:
            await asyncio.wait(turns)
        for one, bot in lost:  # after the commit of the others: it may be what its worker died of
            await self._handle(decide_chat(one, bot))

    async def _bot(self, workspace: WorkspaceId, taken: Sequence[TakenChat]) -> Bot | None:
        """``None``: these chats were given back."""
        try:
            bot = await self._rulesets.get(workspace, taken[0].rules_seq)
        except NoBot:
            bot = None
        except Exception as exc:
            bot = None
            await self._aside.failed(workspace, exc)
        if bot is None or self._stopping.is_set():
            await self._release(workspace, taken)
            return None
        return bot

    async def _release(self, workspace: WorkspaceId, taken: Iterable[TakenChat]) -> None:
        chats = [one.chat for one in taken if one.updates or self._stopping.is_set()]
        for chat in chats:
            self._leases.drop(chat)
        try:
            if chats:
                await self._gateway.release_chats(workspace, chats)
        except Exception as exc:  # their leases end
            get_logger().warning("chats.not_released", error=error_name(exc), chats=len(chats))
