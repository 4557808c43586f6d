"""The CPU time that a query takes in the database, by its own statistics: other processes do not count."""

import re
from collections.abc import Callable
from typing import Any

import asyncpg

from harness.growth import MOST, RUNS, UNNOTICEABLE

_USED = re.compile(r"!\s+([\d.]+) s user, ([\d.]+) s system, [\d.]+ s elapsed")


class DatabaseTime:
    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """The connection must be a superuser's."""
        self._connection = connection
        self._seconds = 0.0
        connection.add_log_listener(self._count)

    async def of(self, query: str, *arguments: Any) -> float:
        """Seconds, without parsing and planning."""
        await self._connection.execute("SET client_min_messages = 'log'")
        await self._connection.execute("SET log_executor_stats = on")
        self._seconds = 0.0
        await self._connection.fetchval(query, *arguments)
        seconds = self._seconds
        await self._connection.execute("SET log_executor_stats = off")
        return seconds

    async def growth(self, query: str, make: Callable[[int], str], size: int) -> float:
        """As ``growth`` of functions: of the time at ``size`` over the time at half of it; 0 where both are short."""
        short = long = float("inf")
        for _ in range(RUNS):
            short, long = min(short, await self.of(query, make(size // 2))), min(long, await self.of(query, make(size)))
            if long < UNNOTICEABLE:
                return 0
            if long <= MOST * short:
                break
        return long / short

    def _count(self, _: Any, message: Any) -> None:
        if used := _USED.search(message.detail or ""):
            self._seconds += float(used[1]) + float(used[2])
