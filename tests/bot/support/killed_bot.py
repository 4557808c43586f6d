"""A replica of the bot that kills itself with SIGKILL, or stops with SIGSTOP, at a given point.

Run as a program it is warmed up once and forks a child for each line of standard input: ``point nth`` is where that
child kills itself, and the how manieth time it gets there; ``hang 0`` lets it live until it is killed. With
``stop:point nth`` it stops there until it gets SIGCONT, and says ``stale`` each time a commit tells it that it came too
late. The child's pid goes to standard output, then its end.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from autopost_adapters.base import AcceptedPart, Target
from autopost_adapters.max.send import MaxAdapter
from autopost_bot.conversation.gateway import ConversationGateway, ReplyVerdict, TurnVerdict
from autopost_bot.conversation.taken import TakenChat
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import Part
from autopost_runtime.telemetry import logs
from bot.support.answering import configured, running_bot

LEASE = timedelta(seconds=4)
CALL = timedelta(seconds=2.4)
POINTS = ("taken", "uncommitted", "committed", "accepted", "unrecorded", "recorded", "told")
"""B2, B3, B4 and B5, B6, B7, the end of it, B8: the others are in test_crash_points."""


class Fate:
    """Counts the visits of one point."""

    def __init__(self, point: str, nth: int) -> None:
        kind, _, name = point.rpartition(":")
        self._signal = signal.SIGSTOP if kind == "stop" else signal.SIGKILL
        self._point, self._left = name, nth

    def at(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._signal)

    def judged(self, verdicts: Sequence[TurnVerdict] | Sequence[ReplyVerdict]) -> None:
        if self._signal == signal.SIGSTOP and any(one.verdict == "stale" for one in verdicts):
            os.write(sys.stdout.fileno(), b"stale\n")


def gateway_of(fate: Fate) -> type[ConversationGateway]:
    class KilledGateway(ConversationGateway):
        async def take_chats(self, *args: Any) -> list[TakenChat]:
            taken = await super().take_chats(*args)
            if taken:
                fate.at("taken")
            return taken

        async def commit_turns(self, *args: Any) -> list[TurnVerdict]:
            fate.at("uncommitted")
            verdicts = await super().commit_turns(*args)
            fate.at("committed")
            fate.judged(verdicts)
            return verdicts

        async def commit_replies(self, outcomes: Sequence[dict[str, Any]]) -> list[ReplyVerdict]:
            fate.at("unrecorded")
            verdicts = await super().commit_replies(outcomes)
            fate.at("recorded")
            fate.judged(verdicts)
            return verdicts

    return KilledGateway


class KilledAdapter:
    """MAX accepts the message, and the process dies before it knows."""

    def __init__(self, adapter: MaxAdapter, fate: Fate) -> None:
        self._adapter, self._fate = adapter, fate

    async def send(self, part: Part, target: Target) -> AcceptedPart | Failed:
        answer = await self._adapter.send(part, target)
        self._fate.at("accepted")
        return answer

    async def find(
        self, part: Part, target: Target, since: datetime, other_than: Collection[str]
    ) -> AcceptedPart | Failed | None:
        return await self._adapter.find(part, target, since, other_than)

    async def answer(self, *args: Any, **options: Any) -> Failed | None:
        return await self._adapter.answer(*args, **options)


async def live(url: str, simulator: str, point: str, nth: int) -> None:
    fate = Fate(point, nth)
    config = configured(url, simulator, bot_lease=LEASE, bot_provider_timeout=CALL, database_pool=4)
    wrap = lambda adapter: KilledAdapter(adapter, fate)  # noqa: E731
    async with running_bot(config, gateway_of(fate), wrap=wrap, tell=lambda *_: fate.at("told")):
        await asyncio.Event().wait()


def main() -> None:
    url, simulator = sys.argv[1:]
    logs.setup("bot", "json", "error")
    for line in sys.stdin:
        point, nth = line.split()
        child = os.fork()
        if child == 0:
            asyncio.run(live(url, simulator, point, int(nth)))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
