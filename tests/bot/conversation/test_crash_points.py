"""The crash points that test_kills cannot have by chance: a lost wakeup, lost answers of commits, pauses, a stop.

The points from B1 to B10 are those of the path: stored, taken, in the commit, the commit's answer, committed, the call,
in the commit of the reply, told, a pause beyond the lease, SIGTERM.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from autopost_bot.conversation.gateway import ConversationGateway, ReplyVerdict, TurnVerdict
from bot.support.answering import PLENTY, Shop, configured, running_bot
from bot.support.killed_bot import CALL, LEASE
from bot.support.process import running
from harness.databases import Database
from harness.eventually import eventually

POLL = timedelta(seconds=2)
"""The default interval."""
STOP = 10.0


async def test_b1_an_update_whose_wakeup_was_never_sent_is_answered_by_the_next_poll(
    database: Database, shop: Shop
) -> None:
    """Its ingest died between the commit and the wakeup. So it is without NATS: slower by one poll."""
    [chat] = await shop.open()
    await shop.rule("ping", "pong")
    async with running_bot(configured(database.url, shop.simulator, poll_interval=POLL)):
        for turn in range(1, 3):
            began = time.monotonic()
            await shop.bot.arrive(chat, text="ping")
            await shop.settle(turn)
            assert time.monotonic() - began < POLL.total_seconds() + 1

    assert await shop.said(chat) == ["pong", "pong"]


class LostAnswer(ConversationGateway):
    """The connection ends with the first commits, before or after they happened."""

    before: set[str]
    after: set[str]

    def _lose(self, when: set[str], name: str) -> None:
        if name in when:
            when.discard(name)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    async def commit_turns(self, *given: Any) -> list[TurnVerdict]:
        self._lose(self.before, "turns")
        verdicts = await super().commit_turns(*given)
        self._lose(self.after, "turns")
        return verdicts

    async def commit_replies(self, *given: Any) -> list[ReplyVerdict]:
        self._lose(self.before, "replies")
        verdicts = await super().commit_replies(*given)
        self._lose(self.after, "replies")
        return verdicts


@pytest.mark.parametrize(("before", "after"), [((), ("turns",)), (("turns",), ()), ((), ("replies",))])
@pytest.mark.parametrize("answer", ["pong", None], ids=["answered", "silent"])
async def test_b4_a_commit_whose_answer_is_lost_is_read_back_and_never_done_twice(
    database: Database, shop: Shop, before: Sequence[str], after: Sequence[str], answer: str | None
) -> None:
    [chat] = await shop.open()
    await shop.rule("ping", "pong {{ text }}", next_state="on", max_turns=9)
    await shop.rule("on", "on {{ text }}" if answer else " ", "any", state="on")

    class Losing(LostAnswer):
        pass

    Losing.before, Losing.after = set(before), set(after)
    for text in ("ping", "one", "two"):
        await shop.bot.arrive(chat, text=text)

    async with running_bot(configured(database.url, shop.simulator), Losing):
        await shop.settle(3)

    assert Losing.before == Losing.after == set()
    assert await shop.said(chat) == (["pong ping", "on one", "on two"] if answer else ["pong ping"])
    assert [log["state_before"] for log in await shop.bot.logs()] == ["default", "on", "on"]


class Paused:
    """A replica in a process of its own, which stops itself at a point."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.child = 0

    async def begin(self, point: str) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"stop:{point} 1\n".encode())
        self.child = int(await self._process.stdout.readline())

    async def said_stale(self) -> bool:
        assert self._process.stdout
        return await self._process.stdout.readline() == b"stale\n"

    def go_on(self) -> None:
        os.kill(self.child, signal.SIGCONT)

    def is_stopped(self) -> bool:
        return Path(f"/proc/{self.child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


@contextlib.asynccontextmanager
async def one_to_pause(database: Database, shop: Shop) -> AsyncIterator[Paused]:
    """Warmed up, so that it begins at once."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.support.killed_bot", database.url, shop.simulator),
        cwd=Path(__file__).parents[2],
        env=os.environ | {"TOKEN": "x"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    paused = Paused(process)
    try:
        yield paused
    finally:
        if paused.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(paused.child, signal.SIGKILL)
        process.kill()
        await process.wait()


async def test_b9_whoever_was_paused_beyond_the_lease_changes_nothing(database: Database, shop: Shop) -> None:
    """One with a chat that is not decided, one with a turn that is not committed, one whose reply was accepted."""
    points = ("taken", "uncommitted", "accepted")
    chats = await shop.open(len(points))
    await shop.rule("ping", "pong {{ text }}")
    async with contextlib.AsyncExitStack() as all_paused:
        paused = [await all_paused.enter_async_context(one_to_pause(database, shop)) for _ in points]
        for one, point, chat in zip(paused, points, chats, strict=True):
            await one.begin(point)
            await shop.bot.arrive(chat, text=f"ping {point}")
            await eventually(one.is_stopped, within=PLENTY)
        config = configured(database.url, shop.simulator, bot_lease=LEASE, bot_provider_timeout=CALL)
        async with running_bot(config):
            await shop.settle(len(points))
            for one in paused:
                one.go_on()
                assert await asyncio.wait_for(one.said_stale(), PLENTY.total_seconds())

        before = [await shop.said(chat) for chat in chats]
        assert before == [[f"pong ping {point}"] for point in points]
        assert len(await shop.bot.logs()) == len(points)
        ended = await shop.db.fetchval("SELECT count(*) FROM events WHERE action = 'bot_replied'")
        assert ended == len(points)


async def test_b10_a_stop_takes_ten_seconds_at_most_and_the_next_process_loses_and_repeats_nothing(
    database: Database, shop: Shop, nats_namespace: str
) -> None:
    hangs, waits = await shop.open(2)
    await shop.rule("ping", "pong {{ text }}")
    hang = {"method": "POST /messages", "chat": int(hangs), "times": 1, "effect": {"hang": True, "accept": True}}
    await shop.control("faults", hang)
    env = {"AUTOPOST_MAX_API_URL": f"{shop.simulator}/max", "TOKEN": "bot-tests-token"}

    async with running(database, "off", nats_namespace, **env) as (process, _, lines):
        await shop.bot.arrive(hangs, text="ping 1")
        await shop.bot.arrive(hangs, text="ping 2")

        async def is_called() -> bool:
            return bool(await shop.said(hangs))

        await eventually(is_called, within=PLENTY)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        await shop.bot.arrive(waits, text="ping 3")
        assert await asyncio.wait_for(process.wait(), STOP) == 0, lines
        assert time.monotonic() - began < STOP
    left = await shop.db.fetch("SELECT lease_token FROM bot_chats")
    assert [row["lease_token"] for row in left] == [None, None]
    assert (await shop.bot.reply(hangs))["last_error"]["ambiguous"] is True

    async with running_bot(configured(database.url, shop.simulator)):
        await shop.bot.due()
        await shop.settle(3)

    assert await shop.said(hangs) == ["pong ping 1", "pong ping 2"]
    assert await shop.said(waits) == ["pong ping 3"]
