"""A name server that never answers keeps waiting whoever asked it, and nobody else."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta

import pytest
from autopost_runtime.fetch.addresses import Guard
from autopost_runtime.fetch.dns import SHARE, Names
from autopost_runtime.fetch.fetch import Fetcher, Unfetched
from harness.eventually import eventually

HERE = ["127.0.0.1"]
MOMENT = timedelta(milliseconds=100)


class BlackHole:
    """Answers every name at once, but for those that hang until the test is over."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self.hanging = 0

    def __call__(self, host: str) -> Sequence[str]:
        if host.startswith("hang"):
            self.hanging += 1
            self._over.wait()
            self.hanging -= 1
            raise socket.gaierror("no answer")
        return HERE

    def end(self) -> None:
        self._over.set()


@pytest.fixture
def hole() -> Iterator[BlackHole]:
    made = BlackHole()
    yield made
    made.end()


async def ask_and_leave(names: Names, times: int, whose: str) -> None:
    async def one(number: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(MOMENT.total_seconds()):
                await names.look_up(f"hang{number}", whose)

    await asyncio.gather(*(one(number) for number in range(times)))


async def test_one_workspace_has_its_share_of_threads_and_others_go_on(hole: BlackHole) -> None:
    names = Names(hole)

    await ask_and_leave(names, 50, "theirs")

    assert hole.hanging == SHARE
    assert await names.look_up("a.example", "ours") == HERE


async def test_there_are_never_more_threads_than_that_in_all(hole: BlackHole) -> None:
    names = Names(hole, most=3, share=2)

    await asyncio.gather(*(ask_and_leave(names, 5, whose) for whose in "abc"))

    assert hole.hanging == 3


async def test_a_place_is_free_again_when_its_thread_is_done(hole: BlackHole) -> None:
    names = Names(hole, most=1, share=1)
    await ask_and_leave(names, 2, "ours")
    waiting = asyncio.create_task(names.look_up("a.example", "ours"))

    hole.end()

    assert await waiting == HERE
    await eventually(lambda: hole.hanging == 0)


async def test_what_the_system_says_is_told_whatever_it_is() -> None:
    def fail(host: str) -> Sequence[str]:
        raise UnicodeError(host)

    with pytest.raises(UnicodeError):
        await Names(fail).look_up("a.example")


async def test_fetches_of_a_black_hole_keep_neither_other_workspaces_nor_our_own_names_waiting(
    hole: BlackHole,
) -> None:
    """Our own are what a driver looks up: in the threads of the loop."""
    fetcher = Fetcher(Guard(), names=Names(hole), unknown_after=MOMENT)

    async def end(whose: str, url: str) -> str:
        try:
            async with fetcher.on_behalf_of(whose).fetch(url, limit=1, within=MOMENT * 20, idle=MOMENT * 20):
                return "answered"
        except Unfetched as exc:
            return exc.code

    theirs = [asyncio.create_task(end("theirs", f"http://hang{number}.example/")) for number in range(50)]
    await eventually(lambda: hole.hanging == SHARE)

    assert await end("ours", "http://a.example/") == "dns"
    assert await asyncio.get_running_loop().getaddrinfo("localhost", 5432)
    assert set(await asyncio.gather(*theirs)) == {"timeout"}
