"""A replica of the bot that kills itself, loses an answer or stops at a given point.

Run as a program it is warmed up once and forks a child for each line of standard input: ``fate nth``, where nth is the
how manieth time the child gets to the point. The child's pid goes to standard output, then its end. Fates:

``point``         SIGKILL
``lose:point``    the connection ends there; then it goes on and is killed after the next reply
``end:point``     SIGTERM, so it gives back what it has
``stop:point``    SIGSTOP until somebody sends SIGCONT; it says ``stale`` when a commit tells it that it came too late
``hang``          lives until it is killed
"""

import asyncio
import os
import signal
import sys
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import asyncpg
from autopost_adapters.base import AcceptedPart, Target
from autopost_adapters.max.send import MaxAdapter
from autopost_bot.conversation.gateway import ConversationGateway, ReplyVerdict, TurnVerdict
from autopost_bot.conversation.taken import TakenChat
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import Part
from autopost_runtime.config.load import Secret
from autopost_runtime.telemetry import logs
from bot.support.answering import configured, running_bot

LEASE = timedelta(seconds=4)
CALL = timedelta(seconds=2.4)
POINTS = ("taken", "uncommitted", "committed", "accepted", "unrecorded", "recorded", "told")
"""B2, B3, B4 and B5, B6, B7, the end of it, B8."""
FATES = (*POINTS, "lose:uncommitted", "lose:committed", "lose:recorded", "end:taken")
"""Also B4 and B10; B1 is always, since nobody sends a wakeup. A pause (B9) is in test_crash_points: one that strikes a
process with calls under way may send a reply after another worker has looked for it."""
LAST_WORDS = 1


class Fate:
    """Counts the visits of one point."""

    def __init__(self, fate: str, nth: int) -> None:
        kind, _, self._point = fate.rpartition(":")
        self._kind = kind or "kill"
        self._says_stale = kind == "stop"
        self._left = nth

    def at(self, point: str) -> None:
        if point != self._point:
            return
        self._left -= 1
        if self._left == 0:
            self._strike()

    def _strike(self) -> None:
        kind, self._kind = self._kind, "kill"
        if not self._says_stale:
            self._point, self._left = "recorded", LAST_WORDS
        match kind:
            case "lose":
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "end":
                os.kill(os.getpid(), signal.SIGTERM)
            case _:
                os.kill(os.getpid(), signal.SIGKILL)

    def judged(self, verdicts: Sequence[TurnVerdict] | Sequence[ReplyVerdict]) -> None:
        if self._says_stale and any(one.verdict == "stale" for one in verdicts):
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

    async def probe(self, token: Secret, within: timedelta) -> Failed | None:
        return await self._adapter.probe(token, within)


async def live(url: str, simulator: str, fate: Fate) -> None:
    config = configured(url, simulator, bot_lease=LEASE, bot_provider_timeout=CALL, database_pool=4)
    wrap = lambda adapter: KilledAdapter(adapter, fate)  # noqa: E731
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with running_bot(config, gateway_of(fate), wrap=wrap, tell=lambda *_: fate.at("told")):
        await ended.wait()


def main() -> None:
    url, simulator = sys.argv[1:]
    logs.setup("bot", "json", "error")
    for line in sys.stdin:
        fate, nth = line.split()
        child = os.fork()
        if child == 0:
            asyncio.run(live(url, simulator, Fate(fate, int(nth))))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
