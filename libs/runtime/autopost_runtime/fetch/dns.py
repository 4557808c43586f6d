"""Resolve names from untrusted URLs in separate threads.

``getaddrinfo`` cannot be cancelled: a caller that stops waiting leaves a thread that waits for the name server. So the
number of threads is bounded, each workspace gets a share of them, and our own names (database, object store) are
resolved elsewhere.
"""

import asyncio
import socket
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from weakref import WeakValueDictionary

MOST = 32
SHARE = 4


def ask_system(host: str) -> Sequence[str]:
    """Accepts every notation of an address. A zone stays in the result."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [f"{place[0]}%{place[3]}" if len(place) > 3 and place[3] else str(place[0]) for *_, place in found]


class Names:
    """A slot is released when its thread ends, not when its caller stops waiting."""

    def __init__(
        self, ask: Callable[[str], Sequence[str]] = ask_system, *, most: int = MOST, share: int = SHARE
    ) -> None:
        self._ask = ask
        self._places = asyncio.Semaphore(most)
        self._share = share
        self._shares: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    async def look_up(self, host: str, whose: Hashable = None) -> Sequence[str]:
        """Raises ``OSError`` or ``UnicodeError``."""
        share = self._shares.setdefault(whose, asyncio.Semaphore(self._share))
        await share.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            share.release()
            raise
        answer: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
        thread = Thread(target=self._work, args=(host, answer, share), name="look up", daemon=True)
        try:
            thread.start()
        except RuntimeError as exc:
            self._end(answer, share, partial(answer.set_exception, OSError(str(exc))))
        return await answer

    def _work(self, host: str, answer: "asyncio.Future[Sequence[str]]", share: asyncio.Semaphore) -> None:
        try:
            report: Callable[[], None] = partial(answer.set_result, self._ask(host))
        except Exception as exc:  # any error is reported to the caller
            report = partial(answer.set_exception, exc)
        with suppress(RuntimeError):  # the loop may be closed
            answer.get_loop().call_soon_threadsafe(self._end, answer, share, report)

    def _end(
        self, answer: "asyncio.Future[Sequence[str]]", share: asyncio.Semaphore, report: Callable[[], None]
    ) -> None:
        self._places.release()
        share.release()
        if not answer.done():
            report()
