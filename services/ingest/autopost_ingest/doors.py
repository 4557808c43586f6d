"""Find the endpoint behind a secret. What was found is remembered for a second, what was not found never.

So a new secret works at once, and a flood of one sender asks the database once a second. A secret that was disabled is
found for a second more; what it brings is refused where it would be stored.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from hashlib import sha256
from typing import Generic, TypeVar

from autopost_ingest.gateway import Endpoint, EndpointKind, Gateway

REMEMBERED = timedelta(seconds=1)
AT_MOST = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Memory(Generic[K, V]):
    """Answers remembered for a moment; an empty answer is not one."""

    def __init__(self, read: Callable[[K], Awaitable[V]], remembered: timedelta = REMEMBERED) -> None:
        self._read = read
        self._remembered = remembered.total_seconds()
        self._known: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asking: dict[K, asyncio.Task[V]] = {}

    def fresh(self, key: K) -> V | None:
        """What need not be asked for."""
        known = self._known.get(key)
        return known[1] if known is not None and time.monotonic() < known[0] else None

    async def get(self, key: K) -> V:
        known = self._known.get(key)
        if known is None:  # what was never found is asked for anew by each: it may just have been made
            return await self._ask(key)
        if time.monotonic() < known[0]:
            return known[1]
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.create_task(self._ask(key))
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(asking)

    async def _ask(self, key: K) -> V:
        asked = time.monotonic()
        found = await self._read(key)
        self._known.pop(key, None)
        if found:
            self._known[key] = (asked + self._remembered, found)
            if len(self._known) > AT_MOST:
                self._known.popitem(last=False)
        return found


class Doors:
    def __init__(self, gateway: Gateway) -> None:
        self._memory: Memory[tuple[EndpointKind, str], Endpoint | None] = Memory(
            lambda key: gateway.resolve_endpoint(*key)
        )

    async def find(self, kind: EndpointKind, secret: str | None) -> Endpoint | None:
        if not secret:
            return None
        key = (kind, sha256(secret.encode(errors="surrogateescape")).hexdigest())
        return self._memory.fresh(key) or await self._memory.get(key)
