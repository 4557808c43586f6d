"""How many workspaces one claim has, and how soon the next one starts.

A claim over many workspaces has a fixed cost, so they are collected for a moment while many are busy. But its slots age
while it runs, and one that is too old is of no use: so what counts is the time that a claim takes.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator

from autopost_dispatcher.claim.schedule import ClaimSchedule

BUSY = 4
"""Workspaces in one claim from which on more are collected for the next."""
LEAST, MOST = 20, 64
"""Below the least the fixed cost is most of the cost."""
LONG, SHORT = 0.012, 0.006
"""Seconds. After a longer claim the next one has half as many workspaces, after a shorter one a few more."""
INTERVAL = 0.008
"""Seconds between the starts of two claims while many workspaces are busy."""


class BatchSize:
    def __init__(self, schedule: ClaimSchedule) -> None:
        self._schedule = schedule
        self.now = MOST // 2
        self._last = 0
        self._began = 0.0

    @contextlib.contextmanager
    def measured(self, workspaces: int) -> Iterator[None]:
        """Around a claim over so many workspaces."""
        self._began, self._last = time.monotonic(), workspaces
        yield
        took = time.monotonic() - self._began
        if took > LONG:
            self.now = max(LEAST, min(self.now, workspaces) // 2)
        elif took < SHORT and workspaces >= self.now:
            self.now = min(MOST, self.now + 4)

    async def collect(self) -> None:
        """Wait for more to become due, unless only few workspaces are busy or a batch is full already."""
        left = self._began + INTERVAL - time.monotonic()
        if self._last >= BUSY and left > 0 and self._schedule.ready() < self.now:
            await asyncio.sleep(left)
