"""How many workspaces one claim has, how old its slots may be, and how soon the next claim starts.

A claim over many workspaces has a fixed cost, so they are collected for a moment while many are busy. But its slots age
while it runs, and one that is too old is of no use: its delivery takes another one by a call of its own. So the longer
claims take, the fewer workspaces they have and the younger their slots must be when they begin.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta

from autopost_dispatcher.claim.schedule import ClaimSchedule

BUSY = 4
"""Workspaces in one claim from which on more are collected for the next."""
LEAST, MOST = 48, 96
"""Below the least the fixed cost is most of the cost."""
LONG, SHORT = 0.018, 0.009
"""Seconds. After a longer claim the next one has half as many workspaces, after a shorter one a few more."""
INTERVAL = 0.012
"""Seconds between the starts of two claims while many workspaces are busy."""
OLDEST = 0.035
"""Seconds. No slot is older than this when a claim gives it."""
IN_THE_LOOP = 0.010
"""Seconds that the loop may take from the answer of a claim to the call."""


class BatchSize:
    def __init__(self, schedule: ClaimSchedule, late: float) -> None:
        """``late``: how many seconds after its slot a call may be made."""
        self._schedule = schedule
        self._late = late
        self.now = MOST // 2
        self._last = 0
        self._began = 0.0
        self._took = 0.0

    @property
    def tolerance(self) -> timedelta:
        """How old the slots of the next claim may be: what is left when it takes as long as the last one."""
        return timedelta(seconds=min(OLDEST, max(0.0, self._late - IN_THE_LOOP - self._took)))

    @contextlib.contextmanager
    def measured(self, workspaces: int) -> Iterator[None]:
        """Around a claim over so many workspaces."""
        self._began, self._last = time.monotonic(), workspaces
        yield
        self._took = time.monotonic() - self._began
        if self._took > LONG:
            self.now = max(LEAST, min(self.now, workspaces) // 2)
        elif self._took < SHORT and workspaces >= self.now:
            self.now = min(MOST, self.now + 4)

    async def collect(self) -> None:
        """Wait for more to become due, unless only few workspaces are busy or a batch is full already."""
        left = self._began + INTERVAL - time.monotonic()
        if self._last >= BUSY and left > 0 and self._schedule.ready() < self.now:
            await asyncio.sleep(left)
