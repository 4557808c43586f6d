"""A service with an HTTP server, wired as in production, in its own thread with a monitored event loop."""

import asyncio
import gc
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from autopost_runtime.lifecycle.service import Service
from msgspec.structs import replace

from harness.eventually import eventually

INTERVAL = timedelta(milliseconds=1)


class Probe:
    """How much CPU time the thread of the loop used between two turns of a task that sleeps for a millisecond.

    What a waiting request would wait, but for what other programs do to the machine meanwhile.
    """

    def __init__(self) -> None:
        self._longest = 0.0

    async def run(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(INTERVAL.total_seconds())
            now = time.thread_time()
            self._longest = max(self._longest, now - before)
            before = now

    def longest(self) -> timedelta:
        """Since it was last asked."""
        longest, self._longest = self._longest, 0.0
        return timedelta(seconds=longest)


class WatchedService:
    def __init__(self, name: str, work: Callable[[Any, Service], Awaitable[None]], config: Any) -> None:
        self.probe = Probe()
        self._name, self._work = name, work
        self._config = replace(config, http_port=_free_port())
        self.url = f"http://127.0.0.1:{self._config.http_port}"
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name=name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._service: Service | None = None

    async def _main(self) -> None:
        self._loop, self._service = asyncio.get_running_loop(), Service(self._name)
        self._service.spawn(self.probe.run(), "probe")
        try:
            await self._work(self._config, self._service)
        finally:
            await self._service.end_tasks()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Without what the garbage collector would do for the tests that ran before in this process."""
        gc.collect()
        gc.freeze()
        self._thread.start()
        try:
            await eventually(self._listens, within=timedelta(seconds=30))
            yield
        finally:
            if self._loop and self._service:
                self._loop.call_soon_threadsafe(self._service.stop)
            await asyncio.to_thread(self._thread.join)
            gc.unfreeze()

    def _listens(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self._config.http_port)) == 0


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
