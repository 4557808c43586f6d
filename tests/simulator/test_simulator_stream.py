"""The log as a stream: it starts anywhere, misses nothing, and a slow reader holds back only itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
from autopost_simulator import Simulator, listening
from harness.eventually import eventually

CHANNEL = -1001000000001


class Follower:
    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines

    async def texts(self, count: int) -> list[str]:
        async with asyncio.timeout(10):
            return [msgspec.json.decode(await anext(self._lines))["text"] for _ in range(count)]

    async def ended(self) -> bool:
        async with asyncio.timeout(10):
            return await anext(self._lines, None) is None


@contextlib.asynccontextmanager
async def following(client: Any, query: str = "") -> AsyncIterator[Follower]:
    async with client.session.get(f"{client.base}/_sim/log?follow=1{query}") as response:
        assert response.status == 200, await response.text()
        yield Follower(aiter(response.content))


async def test_a_follower_gets_what_is_there_and_then_what_comes(client):
    await client.send("one")

    async with following(client) as follower:
        assert await follower.texts(1) == ["one"]
        await client.send("two")
        assert await follower.texts(1) == ["two"]
        await client.post("three")
        await client.send("four")
        assert await follower.texts(2) == ["three", "four"]


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("&after=1", ["two", "three", "four"]),
        ("&after=3", ["four"]),
        ("&last=1", ["three", "four"]),
        ("&last=0", ["four"]),
        ("&platform=telegram&after=1", ["three", "four"]),
    ],
)
async def test_it_starts_where_it_was_told_to(client, query, texts):
    await client.send("one")
    await client.post("two")
    await client.send("three")

    async with following(client, query) as follower:
        seen = await follower.texts(len(texts) - 1)
        await client.send("four")

        assert seen + await follower.texts(1) == texts


async def test_it_ends_by_itself_after_as_many_as_were_asked_for(client):
    await client.send("one")

    async with following(client, "&limit=2") as follower:
        await client.send("two")
        await client.send("three")

        assert await follower.texts(2) == ["one", "two"]
        assert await follower.ended()


async def test_it_goes_on_over_a_reset(client):
    async with following(client) as follower:
        await client.telegram("getMe")
        await client.control("reset", {})
        await client.telegram("getMe", text="after")

        assert await follower.texts(2) == [None, "after"]


async def test_a_reader_that_takes_nothing_holds_back_nobody_and_misses_nothing(start, log_file):
    client = await start(open_to_all=True, log=log_file)
    await client.control("tokens", {"platform": "telegram", "token": "1001:telegram-token", "limits": []})
    await client.control("chats", {"platform": "telegram", "id": CHANNEL, "limits": []})
    wanted = [f"{number}" + "x" * 4_000 for number in range(1_500)]

    async with following(client) as asleep:
        for text in wanted:
            await client.send(text)

        assert await asleep.texts(len(wanted)) == wanted


async def test_a_line_wakes_who_listens():
    simulator = Simulator(open_to_all=True)
    async with listening(simulator) as base, aiohttp.ClientSession() as http:
        with simulator.journal.listening() as news:
            await http.post(f"{base}/bot1:a/getMe")

            assert news.is_set()


async def test_who_left_is_forgotten():
    simulator = Simulator()
    async with listening(simulator) as base, aiohttp.ClientSession() as http:
        async with http.get(f"{base}/_sim/log?follow=1"):
            await eventually(lambda: simulator.journal._listeners)

        await eventually(lambda: not simulator.journal._listeners)
