"""What was found is remembered for a moment, and of those who ask at the same moment one asks for all."""

import asyncio
from datetime import timedelta

import pytest
from autopost_ingest.doors import Memory
from harness.eventually import eventually


class Reads:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = {"known": "a"}
        self.open = asyncio.Event()

    async def read(self, key: str) -> str:
        self.asked.append(key)
        await self.open.wait()
        return self.answers.get(key, "")


@pytest.fixture
def reads() -> Reads:
    return Reads()


async def test_what_was_found_is_not_asked_for_again(reads):
    memory, reads.answers = Memory(reads.read, timedelta(hours=1)), {"known": "a"}
    reads.open.set()

    assert [await memory.get("known") for _ in range(3)] == ["a"] * 3
    assert reads.asked == ["known"]


async def test_when_it_is_forgotten_one_asks_for_all(reads):
    memory = Memory(reads.read, timedelta(0))
    reads.open.set()
    await memory.get("known")
    reads.open.clear()
    reads.answers["known"] = "b"

    crowd = [asyncio.create_task(memory.get("known")) for _ in range(50)]
    await eventually(lambda: len(reads.asked) == 2)  # by then all of them have asked
    crowd[0].cancel()
    reads.open.set()
    told = await asyncio.gather(*crowd, return_exceptions=True)

    assert told[1:] == ["b"] * 49
    assert reads.asked == ["known"] * 2


async def test_what_was_never_found_is_asked_for_by_each(reads):
    """A secret that was just made works at once, whoever asked for it a moment before."""
    memory = Memory(reads.read, timedelta(hours=1))
    early = asyncio.create_task(memory.get("new"))
    await eventually(lambda: reads.asked == ["new"])

    late = asyncio.create_task(memory.get("new"))
    await eventually(lambda: reads.asked == ["new"] * 2)
    reads.open.set()

    assert [await early, await late] == ["", ""]
