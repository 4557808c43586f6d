"""Take chats, decide their turns and commit them, before anything is sent.

A worker that dies before the commit has decided nothing: its chats are taken again when their leases end. After the
commit the reply goes first, by whoever takes the chat.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.set_aside import SetAside, error_name
from autopost_runtime.postgres.pool import is_retryable, may_have_committed
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger
from msgspec import Struct
from msgspec.structs import replace

from autopost_bot.conversation.gateway import ConversationGateway, TurnVerdict
from autopost_bot.conversation.lease import ChatLeases
from autopost_bot.conversation.rulesets import NoBot, Rulesets
from autopost_bot.conversation.schedule import ChatSchedule
from autopost_bot.conversation.slots import PATIENCE
from autopost_bot.conversation.taken import Bot, ReplyJob, Slot, StoredUpdate, TakenChat
from autopost_bot.engine.next_turns import next_turns
from autopost_bot.engine.turn import Turn

turns_total = metrics.counter("autopost_bot_turns_total", "Handled updates by outcome.")
turn_seconds = metrics.histogram("autopost_bot_turn_seconds", "How long the engine took for the turns of a chat.")


class Decided(Struct, frozen=True, eq=False):
    """The turns of one chat; only the last one may reply."""

    taken: TakenChat
    bot: Bot
    turns: tuple[Turn, ...]
    updates: tuple[StoredUpdate, ...]
    """Those that the turns handle."""

    @property
    def last(self) -> Turn:
        return self.turns[-1]


class TurnLoop:
    def __init__(
        self,
        gateway: ConversationGateway,
        schedule: ChatSchedule,
        rulesets: Rulesets,
        leases: ChatLeases,
        *,
        send: Callable[[ReplyJob], None],
        press: Callable[[Bot, TakenChat, StoredUpdate, Turn], None],
        stopping: asyncio.Event,
        lease: timedelta,
        limit: int,
        most: int,
        most_of_one: int,
    ) -> None:
        self._gateway = gateway
        self._schedule = schedule
        self._rulesets = rulesets
        self._leases = leases
        self._send = send
        self._press = press
        self._stopping = stopping
        self._lease = lease
        self._limit = limit
        self._most = most
        self._most_of_one = most_of_one
        self._aside = SetAside("bot_turns", gateway)

    async def run(self) -> None:
        while (workspace := await self._schedule.next()) is not None:
            if not self._aside.left(workspace):
                await self._serve(workspace)

    def room(self, workspace: WorkspaceId) -> int:
        """How many more chats of this workspace the process may have."""
        of_one = self._most_of_one - self._leases.count(workspace)
        return min(of_one, self._most - self._leases.count(), self._limit)

    async def _serve(self, workspace: WorkspaceId) -> None:
        """One workspace that fails is set aside; its chats go back, and the others are served."""
        taken: list[TakenChat] = []
        try:
            room = self.room(workspace)
            if room < 1:
                return  # whoever gives a chat back wakes the workspace again
            known = self._rulesets.known(workspace)
            each = max(1, known.ruleset.settings.gather) if known else 1
            taken = await self._gateway.take_chats(workspace, room, each, self._lease)
            if len(taken) == room or any(one.takes > 1 for one in taken):
                self._schedule.wake(workspace)  # of chats that were lost before, each take has one
            await self._handle(workspace, taken)
            await self._aside.worked(workspace)
        except NoBot:
            await self._release(workspace, taken)
        except Exception as exc:
            await self._aside.failed(workspace, exc)
            await self._release(workspace, taken)

    async def _handle(self, workspace: WorkspaceId, taken: Sequence[TakenChat]) -> None:
        if not taken:
            return
        for one in taken:
            self._leases.hold(one.chat)
        bot = await self._rulesets.get(workspace, taken[0].rules_seq)
        if self._stopping.is_set():
            await self._release(workspace, taken)
            return
        for one in taken:
            if one.reply is not None:
                self._send(_pending(one, bot))
        fresh = [_decide(one, bot) for one in taken if one.updates and one.takes == 1]
        if fresh:
            await self._commit(workspace, fresh)
        for one in taken:  # after the commit of the others: it may be what its worker died of
            if one.updates and one.takes > 1:
                await self._commit(workspace, [_decide(one, bot)])

    async def _release(self, workspace: WorkspaceId, taken: Sequence[TakenChat]) -> None:
        chats = [one.chat for one in taken if one.updates or self._stopping.is_set()]
        for chat in chats:
            self._leases.drop(chat)
        try:
            if chats:
                await self._gateway.release_chats(workspace, chats)
        except Exception as exc:  # their leases end
            get_logger().warning("chats.not_released", error=error_name(exc), chats=len(chats))

    async def _commit(self, workspace: WorkspaceId, decided: Sequence[Decided]) -> None:
        """In one call; one by one if the database refuses it, so that one bad turn does not affect the others."""
        try:
            verdicts = await self._commit_or_read(workspace, decided)
        except Exception as exc:
            if is_retryable(exc) or len(decided) == 1:
                raise
            for one in decided:
                await self._commit_alone(workspace, one)
            return
        by_chat = {one.taken.chat.chat_id: one for one in decided}
        for verdict in verdicts:
            self._committed(workspace, by_chat[verdict.chat_id], verdict)

    async def _commit_alone(self, workspace: WorkspaceId, decided: Decided) -> None:
        """A turn that the database refuses waits for the end of its lease, and is poison the third time."""
        try:
            await self._commit(workspace, [_without_text(decided) if decided.last.outcome == "failed" else decided])
        except Exception as exc:
            self._leases.drop(decided.taken.chat)
            get_logger().error("turn.refused", exc_info=exc, chat=decided.taken.chat.token, takes=decided.taken.takes)

    async def _commit_or_read(self, workspace: WorkspaceId, decided: Sequence[Decided]) -> list[TurnVerdict]:
        """A commit without an answer is read back by the tokens: it happened, or it is done again; never both."""
        backoff, left, verdicts = Backoff(), list(decided), list[TurnVerdict]()
        while left:
            try:
                return [*verdicts, *await self._gateway.commit_turns(workspace, list(map(_document, left)), PATIENCE)]
            except Exception as exc:
                if not (is_retryable(exc) or may_have_committed(exc)) or left[0].taken.chat.lease.left() < 0:
                    raise
                get_logger().warning("turns.unknown", error=error_name(exc), turns=len(left))
            await backoff.wait()
            left = await self._read_back(workspace, left, verdicts)
        return verdicts

    async def _read_back(
        self, workspace: WorkspaceId, left: Sequence[Decided], verdicts: list[TurnVerdict]
    ) -> list[Decided]:
        try:
            found = {
                row.chat_id: row for row in await self._gateway.read_turns(workspace, [d.taken.chat for d in left])
            }
        except Exception as exc:
            if not is_retryable(exc):
                raise
            return list(left)
        again: list[Decided] = []
        for one in left:
            row = found.get(one.taken.chat.chat_id)
            if row is None:  # given back by the commit, or passed on
                verdicts.append(TurnVerdict(one.taken.chat.chat_id, "silent", more=True))
            elif row.committed:
                of = (row.reply_id, row.attempt, row.slot_at, row.wait)
                verdicts.append(TurnVerdict(row.chat_id, "committed", *of))
            else:
                again.append(one)
        return again

    def _committed(self, workspace: WorkspaceId, decided: Decided, verdict: TurnVerdict) -> None:
        chat = decided.taken.chat
        if verdict.verdict == "committed" and verdict.reply_id is not None:
            self._send(_job(decided, verdict))
        else:
            self._leases.drop(chat)
        if verdict.more:
            self._schedule.wake(workspace)
        if verdict.verdict == "stale":
            get_logger().info("turn.stale", workspace_id=str(workspace), chat=chat.token)
            return
        for turn, stored in zip(decided.turns, decided.updates, strict=True):
            _report(decided, turn, stored, verdict)
            if stored.update.callback_id is not None:
                self._press(decided.bot, decided.taken, stored, turn)


def _decide(taken: TakenChat, bot: Bot) -> Decided:
    started = time.perf_counter()
    turns = next_turns(bot.ruleset, taken.conversation, [stored.update for stored in taken.updates], takes=taken.takes)
    turn_seconds.record(time.perf_counter() - started)
    return Decided(taken, bot, turns, taken.updates[: len(turns)])


def _document(decided: Decided) -> dict[str, Any]:
    """The turn as ``commit_turns`` takes it."""
    last, stored = decided.last, decided.updates[-1]
    following = last.next
    return {
        "chat_id": decided.taken.chat.chat_id,
        "lease_token": decided.taken.chat.lease.token,
        "trace_id": stored.trace_id,
        "traceparent": stored.traceparent,
        "updates": [{"key": turn.key, "log": turn.log} for turn in decided.turns],
        "next": following
        and {
            "state": following.state,
            "context": following.context,
            "expires_in": following.expires_in and following.expires_in.total_seconds(),
        },
        "reply": last.plan
        and {
            "key": last.key,
            "kind": "notice" if last.outcome == "flooded" else "reply",
            "plan": last.plan,
            "plan_hash": last.plan.digest(),
            "response_hash": last.response_hash,
        },
        "escalation": next((turn.escalation for turn in decided.turns if turn.escalation), None),
    }


def _without_text(decided: Decided) -> Decided:
    turns = tuple(replace(turn, log=replace(turn.log, message_text="")) for turn in decided.turns)
    return replace(decided, turns=turns)


def _job(decided: Decided, verdict: TurnVerdict) -> ReplyJob:
    now, plan, stored = time.monotonic(), decided.last.plan, decided.updates[-1]
    if plan is None or verdict.reply_id is None:
        raise ValueError("a turn without a reply has nothing to send")
    slot = None
    if verdict.slot_at is not None and verdict.wait is not None:
        slot = Slot(now + verdict.wait.total_seconds(), verdict.slot_at)
    return ReplyJob(
        chat=decided.taken.chat,
        bot=decided.bot,
        reply_id=verdict.reply_id,
        plan=plan,
        slot=slot,
        created_at=stored.update.at,
        stored_at=stored.update.at,
        granted_at=now,
        traceparent=stored.traceparent,
    )


def _pending(taken: TakenChat, bot: Bot) -> ReplyJob:
    reply = taken.reply
    if reply is None:
        raise ValueError("the chat has no reply that waits")
    return ReplyJob(
        chat=taken.chat,
        bot=bot,
        reply_id=reply.reply_id,
        plan=reply.plan,
        slot=None,
        progress=reply.progress,
        maybe_sent=reply.maybe_sent,
        sent_ids=reply.sent_ids,
        created_at=reply.created_at,
        stored_at=reply.created_at,
        granted_at=time.monotonic(),
        traceparent=reply.traceparent,
    )


def _report(decided: Decided, turn: Turn, stored: StoredUpdate, verdict: TurnVerdict) -> None:
    turns_total.add(1, {"outcome": turn.outcome})
    chat = decided.taken.chat
    get_logger().info(
        "turn.handled",
        workspace_id=str(chat.workspace_id),
        chat=chat.token,
        outcome=turn.outcome,
        verdict=verdict.verdict,
        rule_id=turn.log.matched_rule_id,
        rule_version=turn.log.rule_version,
        state_before=turn.log.state_before,
        state_after=turn.log.state_after,
        reply_id=str(verdict.reply_id) if verdict.reply_id else None,
        takes=decided.taken.takes,
        trace_id=stored.trace_id,
    )
