"""From the media of a part to what it is sent from: an id the platform knows, or bytes that this claim must bring.

A blob goes to a platform once per bot. Whose turn it is to bring it the database decides, for all replicas; who
comes second waits for the first one's id.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Protocol
from weakref import WeakValueDictionary

from autopost_adapters.base import Held, Material, MediaMissing, MediaUnreadable
from autopost_contracts.plan import PlannedMedia
from autopost_runtime.logs import get_logger
from autopost_runtime.objects import ObjectMissing
from autopost_runtime.postgres import is_retryable

from autopost_dispatcher.gateway import Claim, Upload

REMEMBERED = 10_000
FRESH = timedelta(minutes=10)
"""How long an id is believed without asking the database again."""
SOON, LATER = 0.02, 0.5
"""Seconds between two looks at what another claim is bringing: the first, and the longest."""

Pause = Callable[[float], Awaitable[None]]


class Store(Protocol):
    @property
    def bucket(self) -> str: ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...


class Uploads(Protocol):
    async def take_uploads(self, claim: Claim, bot_id: str, kinds: Mapping[str, str]) -> list[Upload]: ...

    async def keep_uploads(self, claim: Claim, bot_id: str, held: Mapping[str, tuple[str, Held]]) -> None: ...

    async def forget_uploads(self, claim: Claim, bot_id: str, ids: Mapping[str, str]) -> None: ...


class Stored:
    """The bytes of a blob as they were stored: whatever else the store gives is not sent to its end."""

    def __init__(self, store: Store | None, upload: Upload) -> None:
        self._store = store
        self._upload = upload

    @property
    def size(self) -> int:
        return self._upload.size_bytes or 0

    @property
    def content_type(self) -> str:
        return self._upload.content_type or "application/octet-stream"

    @property
    def name(self) -> str:
        return self._upload.name or self._upload.blob_ref.removeprefix("sha256:")[:16]

    async def open(self) -> AsyncIterator[bytes]:
        """The last chunk is given away only when all of them are what was stored."""
        digest, size, last = sha256(), 0, b""
        async for chunk in self._chunks():
            digest.update(chunk)
            size += len(chunk)
            if size > self.size:
                break
            if last:
                yield last
            last = chunk
        if size != self.size or digest.hexdigest() != self._upload.sha256:
            raise MediaUnreadable("the stored object is not what was stored")
        if last:
            yield last

    async def _chunks(self) -> AsyncIterator[bytes]:
        bucket, _, key = (self._upload.origin_url or "").removeprefix("s3://").partition("/")
        if self._store is None or bucket != self._store.bucket:
            raise MediaUnreadable("there is no store for this object")
        try:
            async for chunk in self._store.stream(key):
                yield chunk
        except ObjectMissing:
            raise MediaMissing(self._upload.blob_ref) from None
        except Exception as exc:
            raise MediaUnreadable(type(exc).__name__) from None


class Shelf:
    """What the platforms hold of our media, as far as this process remembers and the database knows."""

    def __init__(self, uploads: Uploads, store: Store | None) -> None:
        self._uploads = uploads
        self._store = store
        self._ids: OrderedDict[tuple[str, ...], tuple[float, str]] = OrderedDict()
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    async def materials(
        self, claim: Claim, bot_id: str, items: Sequence[PlannedMedia], pause: Pause
    ) -> Mapping[str, Material]:
        """By ``blob_ref``. What comes as bytes is ours to bring, until the claim ends. Raises ``MediaMissing``."""
        kinds = {item.blob_ref: item.type for item in items if item.blob_ref}
        if (known := self._known(claim, bot_id, kinds)) is not None:
            return known
        lock = self._locks.setdefault(_key(claim, bot_id, *sorted(kinds)), asyncio.Lock())
        async with lock:  # one of this process asks; the others find what it was told
            wait = SOON
            while (known := self._known(claim, bot_id, kinds)) is None:
                told = await self._uploads.take_uploads(claim, bot_id, kinds)
                self._learn(claim, bot_id, kinds, {one.blob_ref: one.provider_id for one in told if one.provider_id})
                if missing := [one.blob_ref for one in told if one.verdict == "missing"]:
                    raise MediaMissing(", ".join(missing))
                if all(one.verdict != "busy" for one in told):
                    return {one.blob_ref: one.provider_id or Stored(self._store, one) for one in told}
                await pause(wait)
                wait = min(wait * 2, LATER)
        return known

    async def keep(self, claim: Claim, bot_id: str, held: Mapping[str, tuple[str, Held]]) -> None:
        """By ``blob_ref``: as what kind it was brought, and what the platform calls it now.

        A database that is away costs an upload later, never the message that the platform has accepted.
        """
        kinds = {ref: kind for ref, (kind, _) in held.items()}
        self._learn(claim, bot_id, kinds, {ref: one.provider_id for ref, (_, one) in held.items()})
        try:
            await self._uploads.keep_uploads(claim, bot_id, held)
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("uploads.not_kept", error=type(exc).__name__, delivery_id=str(claim.delivery_id))

    async def forget(self, claim: Claim, bot_id: str, ids: Mapping[str, str]) -> None:
        """The platform refused these ids; by ``blob_ref``."""
        await self._uploads.forget_uploads(claim, bot_id, ids)
        for key in [key for key, (_, provider_id) in self._ids.items() if provider_id in ids.values()]:
            del self._ids[key]

    def _known(self, claim: Claim, bot_id: str, kinds: Mapping[str, str]) -> Mapping[str, str] | None:
        found = {}
        for ref, kind in kinds.items():
            until, provider_id = self._ids.get(_key(claim, bot_id, ref, kind), (0.0, ""))
            if time.monotonic() >= until:
                return None
            found[ref] = provider_id
        return found

    def _learn(self, claim: Claim, bot_id: str, kinds: Mapping[str, str], ids: Mapping[str, str]) -> None:
        until = time.monotonic() + FRESH.total_seconds()
        for ref, provider_id in ids.items():
            self._ids[_key(claim, bot_id, ref, kinds[ref])] = (until, provider_id)
        while len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)


def _key(claim: Claim, bot_id: str, *rest: str) -> tuple[str, ...]:
    return (str(claim.workspace_id), claim.channel.platform, bot_id, *rest)
