"""What was found is remembered for a moment, and of those who ask at the same moment one asks for all."""

import asyncio
import time
from datetime import timedelta

import pytest
from autopost_runtime.http.endpoint_cache import MAX_ENTRIES, EndpointCache, TtlCache
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
    memory, reads.answers = TtlCache(reads.read, timedelta(hours=1)), {"known": "a"}
    reads.open.set()

    assert [await memory.get("known") for _ in range(3)] == ["a"] * 3
    assert reads.asked == ["known"]


async def test_when_it_is_forgotten_one_asks_for_all(reads):
    memory = TtlCache(reads.read, timedelta(0))
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


async def test_of_a_flood_with_one_wrong_secret_one_asks_for_all(reads):
    memory = TtlCache(reads.read, timedelta(hours=1))
    flood = [asyncio.create_task(memory.get("wrong")) for _ in range(50)]
    await eventually(lambda: reads.asked == ["wrong"])
    reads.open.set()

    assert await asyncio.gather(*flood) == [""] * 50
    assert [await memory.get("wrong") for _ in range(50)] == [""] * 50
    assert reads.asked == ["wrong"]


async def test_a_secret_that_is_made_after_it_was_tried_is_found_when_the_miss_is_forgotten(reads):
    memory = TtlCache(reads.read, timedelta(0))
    reads.open.set()
    assert await memory.get("new") == ""

    reads.answers["new"] = "a"

    assert await memory.get("new") == "a"


async def test_made_up_secrets_fill_no_more_than_their_room_and_crowd_out_no_good_one(reads):
    memory = TtlCache(reads.read, timedelta(hours=1))
    reads.open.set()
    await memory.get("known")

    for number in range(MAX_ENTRIES + 10):
        await memory.get(f"wrong {number}")
    asked = len(reads.asked)

    assert (await memory.get("known"), len(reads.asked)) == ("a", asked)
    assert await memory.get("wrong 0") == ""
    assert len(reads.asked) == asked + 1


async def test_a_failed_look_up_is_not_remembered(reads):
    class BrokenError(Exception):
        pass

    async def read(key: str) -> str:
        reads.asked.append(key)
        raise BrokenError

    memory = TtlCache(read, timedelta(hours=1))

    for _ in range(2):
        with pytest.raises(BrokenError):
            await memory.get("any")
    assert reads.asked == ["any"] * 2


class NoEndpoints:
    """Stands in for the database."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def resolve_endpoint(self, kind: str, secret_hash: str) -> None:
        self.asked.append((kind, secret_hash))


async def test_wrong_secrets_are_looked_up_once_each_and_by_their_kind():
    gateway = NoEndpoints()
    cache = EndpointCache(gateway.resolve_endpoint)  # type: ignore[arg-type]
    began = time.monotonic()

    for _ in range(20):
        found = await asyncio.gather(
            *(cache.find(kind, secret) for kind in ("webhook_push", "bot_webhook") for secret in ("a", "b", None, ""))
        )
        assert found == [None] * 8

    assert len(set(gateway.asked)) == 4
    assert len(gateway.asked) <= 4 * (1 + time.monotonic() - began)
