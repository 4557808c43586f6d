"""Replicas killed, stopped and cut off between an update and its reply: every customer is answered once, in order."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bot.support.answering import TEXTS, Shop
from bot.support.killed_bot import FATES
from harness.autopost_command import Autopost
from harness.databases import Database
from harness.full import FULL

pytestmark = pytest.mark.time_limit(1200 if FULL else 240)

CHATS = 300 if FULL else 15
TURNS = 10_000 if FULL else 150
KILLS = 55 if FULL else len(FATES)
REPLICAS = 3
LATEST = 12 if FULL else 4
"""Visits of its point before a fate strikes."""


class Replicas:
    """Replicas that are born again when they die, until there have been enough deaths."""

    def __init__(self, database: Database, shop: Shop) -> None:
        self._database = database
        self._shop = shop
        self._chance = random.Random(7)
        self._fates = [fate for _ in range(-(-KILLS // len(FATES))) for fate in FATES][:KILLS]
        self.deaths: dict[str, int] = defaultdict(int)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        lives = [asyncio.create_task(self._live()) for _ in range(REPLICAS)]
        yield
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)

    async def _live(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot.support.killed_bot", self._database.url, self._shop.simulator),
            cwd=Path(__file__).parents[2],
            env=os.environ | {"TOKEN": "x"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin and process.stdout
        child = 0
        try:
            while True:
                point = self._fates.pop() if self._fates else "hang"
                process.stdin.write(f"{point} {self._chance.randint(1, LATEST)}\n".encode())
                child = int(await process.stdout.readline())
                if int(await process.stdout.readline()) in (-signal.SIGKILL, 0):
                    self.deaths[point] += 1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            process.kill()
            await process.wait()


async def test_every_update_is_answered_once_and_in_order(database: Database, shop: Shop) -> None:
    chats = await shop.open(CHATS)
    await shop.rule("number", "{{ text }}")
    replicas = Replicas(database, shop)
    before = TURNS // 2
    for turn in range(before):
        await shop.bot.arrive(chats[turn % CHATS], key=f"mid.{turn}", text=f"number {turn}")

    log: list[dict[str, Any]] = []
    reading = asyncio.create_task(read_log(shop, log))
    async with replicas.running():
        for turn in range(before, TURNS):
            await shop.bot.arrive(chats[turn % CHATS], key=f"mid.{turn}", text=f"number {turn}")
        await shop.settle(TURNS, within=timedelta(minutes=6))

    reading.cancel()
    log += await shop.log(after=log[-1]["seq"])
    assert sum(replicas.deaths.values()) >= KILLS - REPLICAS, replicas.deaths
    said, failed = by_chat(log), await failed_keys(shop)
    for place, chat in enumerate(chats):
        wanted = [(f"mid.{turn}", f"number {turn}") for turn in range(place, TURNS, CHATS)]
        assert said[chat] == [TEXTS["escalate"] if key in failed else text for key, text in wanted]
    assert len(failed) <= KILLS  # each time one chat at the most was lost for the third time
    await check_invariants(shop)
    verified = await Autopost(database.url)("verify", "--no-stream", "--json")
    assert (verified.json["checked"]["turns"], verified.json["differences"]) == (TURNS, [])


async def failed_keys(shop: Shop) -> set[str]:
    """Updates whose workers died three times: they look like poison, and their customers were told of an operator."""
    rows = await shop.db.fetch("SELECT meta ->> 'key' FROM bot_logs WHERE meta ->> 'outcome' = 'failed'")
    return {row[0] for row in rows}


def by_chat(log: list[dict[str, Any]]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = defaultdict(list)
    for line in log:
        if line["message_ids"]:
            said[str(line["chat"])].append(line["text"])
    return said


async def read_log(shop: Shop, log: list[dict[str, Any]]) -> None:
    """As it grows: the simulator keeps the newest ten thousand lines."""
    while True:
        log += await shop.log(after=log[-1]["seq"] if log else 0)
        await asyncio.sleep(1)


async def check_invariants(shop: Shop) -> None:
    """One log line per update; what is sent has its event; states are a chain."""
    counts: Any = await shop.db.fetchrow(
        """
        SELECT (SELECT count(*) FROM bot_inbox WHERE processed_at IS NULL) AS unhandled,
               (SELECT count(*) FROM bot_inbox) - (SELECT count(DISTINCT meta ->> 'key') FROM bot_logs) AS unlogged,
               (SELECT count(*) FROM bot_logs) - (SELECT count(*) FROM bot_inbox) AS logged_twice,
               (SELECT count(*) FROM bot_outbox WHERE sent_at IS NOT NULL)
               - (SELECT count(*) FROM events WHERE action = 'bot_replied') AS untold,
               (SELECT count(*) FROM bot_outbox WHERE failed_at IS NOT NULL) AS failed
        """
    )
    assert dict(counts) == {"unhandled": 0, "unlogged": 0, "logged_twice": 0, "untold": 0, "failed": 0}
