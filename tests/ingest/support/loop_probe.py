"""Measures how long the event loop was blocked."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Probe:
    """``longest`` is the most CPU time, in seconds, that went by between two turns of the loop.

    Not the time by the clock: on a busy machine that says nothing of us.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._turned = asyncio.Event()

    async def run(self) -> None:
        while True:
            before = time.process_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.process_time() - before)
            self._turned.set()

    async def turn(self) -> None:
        """Wait until what was done before is measured. What never awaits would pass unnoticed."""
        self._turned.clear()
        await self._turned.wait()


@asynccontextmanager
async def probed() -> AsyncIterator[Probe]:
    probe = Probe()
    running = asyncio.create_task(probe.run())
    try:
        yield probe
    finally:
        running.cancel()
