"""Look up the endpoint of a secret, with a one-second cache that also holds misses.

A flood with one secret, known or unknown, costs one query per second. A secret that was disabled resolves for up to one
second more; the database refuses its posts. A secret that was tried before it was created works within a second.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from hashlib import sha256
from typing import Generic, Literal, TypeVar

from aiohttp import web
from autopost_contracts.ids import EndpointId, WorkspaceId
from msgspec import Struct

TTL = timedelta(seconds=1)
MAX_ENTRIES = 10_000
"""For hits and for misses each."""

EndpointKind = Literal["webhook_push", "bot_webhook", "pull_source", "bot_api", "publication_api"]


class Endpoint(Struct, frozen=True, kw_only=True):
    workspace_id: WorkspaceId
    endpoint_id: EndpointId
    workspace_status: Literal["active", "paused", "disabled"]
    max_payload_bytes: int
    ingress_rps: float | None = None


K = TypeVar("K")
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """Cache with a time to live. Misses are stored separately, so that invented keys cannot evict real ones."""

    def __init__(self, read: Callable[[K], Awaitable[V]], ttl: timedelta = TTL) -> None:
        self._read = read
        self._ttl = ttl.total_seconds()
        self._hits: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._misses: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._reads: dict[K, asyncio.Task[V]] = {}

    def fresh(self, key: K) -> V | None:
        """The cached value; ``None`` when it must be read."""
        known = self._hits.get(key)
        return known[1] if known is not None and time.monotonic() < known[0] else None

    async def get(self, key: K) -> V:
        """Concurrent callers of one key share one read."""
        known = self._hits.get(key) or self._misses.get(key)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        read = self._reads.get(key)
        if read is None:
            read = self._reads[key] = asyncio.create_task(self._read_and_store(key))
            read.add_done_callback(lambda _: self._reads.pop(key, None))
        return await asyncio.shield(read)

    async def _read_and_store(self, key: K) -> V:
        started = time.monotonic()
        found = await self._read(key)
        self._hits.pop(key, None)
        self._misses.pop(key, None)
        store = self._hits if found else self._misses
        store[key] = (started + self._ttl, found)
        if len(store) > MAX_ENTRIES:
            store.popitem(last=False)
        return found


class EndpointCache:
    def __init__(self, resolve: Callable[[EndpointKind, str], Awaitable[Endpoint | None]]) -> None:
        self._cache: TtlCache[tuple[EndpointKind, str], Endpoint | None] = TtlCache(lambda key: resolve(*key))

    async def find(self, kind: EndpointKind, secret: str | None) -> Endpoint | None:
        if not secret:
            return None
        key = (kind, sha256(secret.encode(errors="surrogateescape")).hexdigest())
        return self._cache.fresh(key) or await self._cache.get(key)


def secret_of(request: web.Request) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip() or None
    return request.headers.get("X-Webhook-Secret") or None
