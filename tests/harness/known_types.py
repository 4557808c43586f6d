"""Connections that know the types of the database before they ask.

asyncpg asks each new connection for the types of its first queries, which costs the server 10 ms: a fifth of a short
test. All databases of one server that a test uses are clones, so their types have the same numbers and need be asked
for once per process.
"""

from typing import Any

import asyncpg


class _Known:
    name = "known"
    """A statement with a name: asyncpg need not prepare its own again."""


class KnowsTypes(asyncpg.Connection):
    _types: dict[tuple[Any, frozenset[int]], Any] = {}  # noqa: RUF012 -- of the process, on purpose

    async def _introspect_types(self, typeoids: Any, timeout: float | None) -> Any:
        key = self._addr, frozenset(typeoids)
        if key not in self._types:
            self._types[key], _ = await super()._introspect_types(typeoids, timeout)
        return self._types[key], _Known
