"""The pipeline of the bot: take → decide → commit → send → commit; it runs while ``conversations`` is entered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.outcomes import Failed, Outcome, Scope
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.lifecycle.set_aside import error_name
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.config import BotConfig
from autopost_bot.conversation.commit import ReplyCommitter
from autopost_bot.conversation.gateway import ConversationGateway, ReplyVerdict
from autopost_bot.conversation.lease import ChatLeases
from autopost_bot.conversation.press import PressAnswers
from autopost_bot.conversation.rulesets import Rulesets
from autopost_bot.conversation.schedule import ChatSchedule, poll
from autopost_bot.conversation.send import Identities, ReplyAdapter, ReplySender
from autopost_bot.conversation.silence import Silences
from autopost_bot.conversation.slots import GiveBack, LeaseLost, ReplySlots
from autopost_bot.conversation.taken import Bot, ReplyJob, StoredUpdate, TakenChat
from autopost_bot.conversation.turns import TurnLoop
from autopost_bot.engine.turn import Turn

TAKERS = 4
"""Takes at once: while one waits for its commit, others decide."""
COMMIT_RESERVE = timedelta(seconds=1.5)
"""The part of the stop timeout that is reserved for committing the last outcomes."""

polls_failed = metrics.counter("autopost_bot_polls_failed_total", "Failed looks for workspaces with something to do.")

Tell = Callable[[WorkspaceId, str, int], None]


class Conversations:
    """The chats that this process has, from take to commit."""

    def __init__(self, sender: ReplySender, presses: PressAnswers, leases: ChatLeases, schedule: ChatSchedule) -> None:
        self._sender = sender
        self._presses = presses
        self._leases = leases
        self._schedule = schedule
        self._sends: set[asyncio.Task[None]] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self.committer: ReplyCommitter
        self.tell: Tell

    def send(self, job: ReplyJob) -> None:
        task = asyncio.create_task(self._run(job))
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)

    def press(self, bot: Bot, taken: TakenChat, stored: StoredUpdate, turn: Turn) -> None:
        answer = self._presses.answer(bot, taken.chat, stored.update.callback_id or "", turn)
        task = asyncio.create_task(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _run(self, job: ReplyJob) -> None:
        try:
            outcome: Outcome | timedelta = await self._sender.send(job)
        except LeaseLost:
            self._leases.drop(job.chat)
            return
        except GiveBack as given_back:
            outcome = given_back.after
        except asyncio.CancelledError:  # the service stops, and the call has no answer yet
            outcome = Failed.transient(Scope.DELIVERY, "stopped", ambiguous=True)
        except Exception as exc:
            get_logger().error("reply.crashed", exc_info=exc, chat=job.chat.token, error=error_name(exc))
            outcome = Failed.transient(Scope.DELIVERY, "internal_error", ambiguous=True)
        self.committer.put(job, outcome)

    def committed(self, job: ReplyJob, verdict: ReplyVerdict | None) -> None:
        chat = job.chat
        self._leases.drop(chat)
        if verdict is None or verdict.verdict == "stale":
            return
        if verdict.seq is not None:
            self.tell(chat.workspace_id, chat.chat_id, verdict.seq)
        if verdict.more:
            self._schedule.wake(chat.workspace_id)

    async def drain(self, within: timedelta) -> None:
        """Calls under way get this long; what waits for a slot gave back at once."""
        if pending := self._sends | self._answers:
            await asyncio.wait(pending, timeout=within.total_seconds())
        for task in self._sends | self._answers:
            task.cancel()
        await asyncio.gather(*self._sends, *self._answers, return_exceptions=True)
        await self.committer.flush()


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
    running = Conversations(
        ReplySender(gateway, adapters, identities, slots, silences),
        PressAnswers(gateway, adapters, identities),
        leases,
        schedule,
    )
    running.tell = tell
    running.committer = ReplyCommitter(gateway, running.committed)
    turns = TurnLoop(
        gateway,
        schedule,
        Rulesets(gateway),
        leases,
        send=running.send,
        press=running.press,
        stopping=service.stopping,
        lease=config.bot_lease,
        limit=config.bot_chats_per_take,
        most=config.bot_chats_at_once,
        most_of_one=config.bot_chats_of_one_workspace,
    )
    service.spawn(leases.run(), "chat leases")
    service.spawn(poll(schedule, gateway, config.poll_interval, lambda: polls_failed.add(1)), "chat poll")
    takers = [service.spawn(turns.run(), f"turns-{number}") for number in range(TAKERS)]
    try:
        yield schedule
    finally:
        service.stop()
        schedule.close()
        await asyncio.gather(*takers, return_exceptions=True)
        await running.drain(min(config.call_drain, config.drain_timeout - COMMIT_RESERVE))
