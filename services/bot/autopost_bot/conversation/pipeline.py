"""The pipeline of the bot: take → decide → commit → send → commit; it runs while ``conversations`` is entered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Scope
from autopost_runtime.lifecycle.probing import LOOK
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.set_aside import SetAside, error_name
from autopost_runtime.lifecycle.stalls import none_waiting, watch_stalls
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.config import BotConfig
from autopost_bot.conversation.commit import ReplyCommitter
from autopost_bot.conversation.decided import Decided, reply_job
from autopost_bot.conversation.gateway import ConversationGateway, TurnVerdict
from autopost_bot.conversation.lease import ChatLeases
from autopost_bot.conversation.press import PressAnswers
from autopost_bot.conversation.probing import Prober
from autopost_bot.conversation.refusals import Refusals
from autopost_bot.conversation.rulesets import Rulesets
from autopost_bot.conversation.schedule import ChatSchedule, poll
from autopost_bot.conversation.send import Identities, ReplyAdapter, ReplySender
from autopost_bot.conversation.silence import Silences
from autopost_bot.conversation.slots import GiveBack, LeaseLost, ReplySlots
from autopost_bot.conversation.take import Taker
from autopost_bot.conversation.taken import Chat, ReplyJob
from autopost_bot.conversation.turns import TurnCommitter

TAKERS = 3
"""Takes at once: while one waits for the database, others decide."""
COMMIT_RESERVE = timedelta(seconds=1.5)
"""The part of the stop timeout that is reserved for committing the last outcomes."""

polls_failed = metrics.counter("autopost_bot_polls_failed_total", "Failed looks for workspaces with something to do.")

Tell = Callable[[WorkspaceId, str, int], None]


class Conversations:
    """The chats that this process has, from take to commit."""

    def __init__(
        self,
        sender: ReplySender,
        presses: PressAnswers,
        leases: ChatLeases,
        schedule: ChatSchedule,
        turns: TurnCommitter,
        replies: ReplyCommitter,
        tell: Tell,
    ) -> None:
        self._sender = sender
        self._presses = presses
        self._leases = leases
        self._schedule = schedule
        self._turns = turns
        self._replies = replies
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._calling: set[asyncio.Task[None]] = set()
        """Those of them that may be cancelled."""

    def send(self, job: ReplyJob) -> None:
        self._spawn(self._send(job))

    def handle(self, decided: Decided) -> "asyncio.Future[None]":
        """Commit the turn and send its reply. Done when it is committed, or refused."""
        committed = asyncio.get_running_loop().create_future()
        self._spawn(self._handle(decided, committed))
        return committed

    async def _handle(self, decided: Decided, committed: "asyncio.Future[None]") -> None:
        try:
            verdict = await self._turns.commit(decided)
        finally:
            committed.set_result(None)
        if verdict is None:
            self._give_back(decided.taken.chat)
            return
        self._answer_presses(decided, verdict)
        if verdict.verdict == "committed" and verdict.reply_id is not None:
            await self._send(reply_job(decided, verdict))
        else:
            self._give_back(decided.taken.chat, verdict.more)

    def _answer_presses(self, decided: Decided, verdict: TurnVerdict) -> None:
        """Pressed buttons wait for an answer of their own."""
        for turn, stored in zip(decided.turns, decided.updates, strict=True):
            if stored.update.callback_id is not None and verdict.verdict != "stale":
                answer = self._presses.answer(decided.bot, decided.taken.chat, stored.update.callback_id, turn)
                self._calling.add(self._spawn(answer))

    async def _send(self, job: ReplyJob) -> None:
        outcome = await self._outcome(job)
        verdict = None if outcome is None else await self._replies.commit(job, outcome)
        self._give_back(job.chat, verdict is not None and verdict.more)
        if verdict is not None and verdict.seq is not None:
            self._tell(job.chat.workspace_id, job.chat.chat_id, verdict.seq)

    async def _outcome(self, job: ReplyJob) -> Outcome | timedelta | None:
        """``None``: another worker has the chat."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  run by _spawn
        self._calling.add(task)
        try:
            return await self._sender.send(job)
        except LeaseLost:
            return None
        except GiveBack as given_back:
            return given_back.after
        except asyncio.CancelledError:  # the service stops, and the call has no answer yet
            task.uncancel()
            return Failed.transient(Scope.DELIVERY, "stopped", ambiguous=True)
        except Exception as exc:
            get_logger().error("reply.crashed", exc_info=exc, chat=job.chat.token, error=error_name(exc))
            return Failed.transient(Scope.DELIVERY, "internal_error", ambiguous=True)
        finally:
            self._calling.discard(task)

    def _give_back(self, chat: Chat, more: bool = False) -> None:
        self._leases.drop(chat)
        self._schedule.given_back(chat.workspace_id)
        if more:
            self._schedule.wake(chat.workspace_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._calling.discard(task)
        if not task.cancelled() and (exc := task.exception()) is not None:
            get_logger().error("chat.crashed", exc_info=exc, error=error_name(exc))

    async def drain(self, within: timedelta) -> None:
        """Calls under way get this long; what waits for a slot gave back at once. How they ended is always recorded."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within.total_seconds())
        for task in list(self._calling):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def conversations(
    config: BotConfig,
    service: Service,
    gateway: ConversationGateway,
    *,
    adapters: Mapping[str, ReplyAdapter],
    identities: Identities,
    tell: Tell,
) -> AsyncIterator[ChatSchedule]:
    """On exit: stops taking, gives back what is not decided, waits for calls and records how they ended."""
    schedule, silences = ChatSchedule(), Silences()
    leases = ChatLeases(gateway, config.bot_lease)
    slots = ReplySlots(gateway, service.stopping, silences, config.bot_provider_timeout)
    aside = SetAside("bot_turns", gateway)
    refusals = Refusals(aside)
    running = Conversations(
        ReplySender(gateway, adapters, identities, slots, silences),
        PressAnswers(gateway, adapters, identities),
        leases,
        schedule,
        TurnCommitter(gateway, refusals, lambda: slots.waiting),
        ReplyCommitter(gateway, refusals),
        tell,
    )
    taker = Taker(
        gateway,
        schedule,
        Rulesets(gateway),
        leases,
        aside,
        send=running.send,
        handle=running.handle,
        stopping=service.stopping,
        lease=config.bot_lease,
        limit=config.bot_chats_per_take,
        most=config.bot_chats_at_once,
        most_of_one=config.bot_chats_of_one_workspace,
    )
    service.spawn(leases.run(), "chat leases")
    prober = Prober(
        gateway,
        adapters,
        identities,
        service,
        schedule,
        every=min(LOOK, config.poll_interval),
        timeout=config.probe_timeout,
    )
    service.spawn(watch_stalls(gateway, silences, none_waiting, service, config.stall_after, schedule.wake), "stalls")
    service.spawn(poll(schedule, gateway, config.poll_interval, lambda: polls_failed.add(1)), "chat poll")
    takers = [service.spawn(taker.run(), f"take-{number}") for number in range(TAKERS)]
    takers.append(service.spawn(prober.run(), "probe"))
    try:
        yield schedule
    finally:
        service.stop()
        schedule.close()
        leases.close()
        await asyncio.gather(*takers, return_exceptions=True)
        await running.drain(min(config.call_drain, config.drain_timeout - COMMIT_RESERVE))
