"""Exponential backoff with jitter, so that replicas do not retry at the same time."""

import asyncio
import random
from datetime import timedelta


class Backoff:
    """Doubles from ``base`` to ``cap``; each wait is between 50 % and 100 % of that."""

    def __init__(self, base: timedelta = timedelta(milliseconds=100), cap: timedelta = timedelta(seconds=5)) -> None:
        self._base = base.total_seconds()
        self._cap = cap.total_seconds()
        self._failures = 0

    def next(self) -> timedelta:
        ceiling = min(self._cap, self._base * 2 ** min(self._failures, 30))
        self._failures += 1
        return timedelta(seconds=ceiling * random.uniform(0.5, 1.0))  # noqa: S311  jitter needs no secure random

    def reset(self) -> None:
        self._failures = 0

    async def wait(self) -> None:
        await asyncio.sleep(self.next().total_seconds())
