"""How many workspaces one claim has, how old its slots may be, and how soon the next claim starts.

A claim over many workspaces has a fixed cost, so they are collected for a moment while many are busy. But its slots age
while it runs and while its deliveries wait for the loop, and one that is too old is of no use: its delivery takes
another one by a call of its own. So the longer claims take, the fewer workspaces they have, and the longer both take,
the younger their slots must be when they begin.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from autopost_dispatcher.claim.schedule import ClaimSchedule

BUSY = 4
"""Workspaces in one claim from which on more are collected for the next."""
LEAST, MOST = 48, 96
"""Below the least the fixed cost is most of the cost."""
LONG, SHORT = 0.018, 0.009
"""Seconds. After a longer claim the next one has half as many workspaces, after a shorter one a few more."""
INTERVAL = 0.016
"""Seconds between the starts of two claims while many workspaces are busy; fewer when a batch is full before."""
LOOK = 0.004
"""Seconds between two looks at whether it is."""
OLDEST = 0.035
"""Seconds. No slot is older than this when a claim gives it."""
IN_THE_LOOP, MOST_IN_THE_LOOP = 0.010, 0.030
"""Seconds that the loop may take from the answer of a claim to the call: more while calls are late."""
MORE, LESS = 0.002, 0.0002
"""Seconds that are added after a claim whose calls were late, and taken away after one whose were not."""
STILL = 0.9
"""Part of the time of the longest claim that the next ones are expected to take."""


class BatchSize:
    def __init__(self, schedule: ClaimSchedule, late: float, missed: Callable[[], int] = lambda: 0) -> None:
        """``late``: how many seconds after its slot a call may be made; ``missed``: how many calls were later."""
        self._schedule = schedule
        self._late = late
        self._missed = missed
        self._missed_before = 0
        self._in_the_loop = IN_THE_LOOP
        self.now = MOST // 2
        self._last = 0
        self._began = 0.0
        self._took = 0.0

    @property
    def tolerance(self) -> timedelta:
        """How old the slots of the next claim may be: what is left when it takes about as long as the last ones."""
        return timedelta(seconds=min(OLDEST, max(0.0, self._late - self._in_the_loop - self._took)))

    @contextlib.contextmanager
    def measured(self, workspaces: int) -> Iterator[None]:
        """Around a claim over so many workspaces."""
        self._began, self._last = time.monotonic(), workspaces
        yield
        took = time.monotonic() - self._began
        self._took = max(took, self._took * STILL)
        if took > LONG:
            self.now = max(LEAST, min(self.now, workspaces) // 2)
        elif took < SHORT and workspaces >= self.now:
            self.now = min(MOST, self.now + 4)
        missed = self._missed()
        changed = MORE if missed > self._missed_before else -LESS
        self._in_the_loop = min(MOST_IN_THE_LOOP, max(IN_THE_LOOP, self._in_the_loop + changed))
        self._missed_before = missed

    async def collect(self) -> None:
        """Wait for more to become due, unless only few workspaces are busy or a batch is full already."""
        while self._last >= BUSY and self._schedule.ready() < self.now:
            left = self._began + INTERVAL - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(left, LOOK))
