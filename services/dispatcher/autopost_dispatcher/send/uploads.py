"""Media of a part: the platform's id of an earlier upload, or the bytes to upload.

Each blob is uploaded once per bot. The database decides which claim uploads it, for all replicas; the others wait for
its id.
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
from autopost_runtime.storage.objects import ObjectMissing
from autopost_runtime.telemetry.logs import get_logger

from autopost_dispatcher.gateway import Claim, UploadState

REMEMBERED = 10_000
FRESH = timedelta(minutes=10)
"""How long a cached id is used without reading the database."""
SOON, LATER = 0.02, 0.5
"""Seconds between checks for an upload by another claim: first and longest."""

Pause = Callable[[float], Awaitable[None]]


class MediaStore(Protocol):
    @property
    def bucket(self) -> str: ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...


class UploadRecords(Protocol):
    async def take_uploads(self, claim: Claim, bot_id: str, kinds: Mapping[str, str]) -> list[UploadState]: ...

    async def keep_uploads(self, claim: Claim, bot_id: str, held: Mapping[str, tuple[str, Held]]) -> None: ...

    async def forget_uploads(self, claim: Claim, bot_id: str, ids: Mapping[str, str]) -> None: ...


class StoredBlob:
    """The bytes of a stored blob. If they differ from what was stored, the stream ends with an error."""

    def __init__(self, store: MediaStore | None, upload: UploadState) -> None:
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
        """Yields the last chunk only after the size and hash of all chunks were checked."""
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
            raise MediaUnreadable("the stored object differs from what was uploaded to the store")
        if last:
            yield last

    async def _chunks(self) -> AsyncIterator[bytes]:
        bucket, _, key = (self._upload.origin_url or "").removeprefix("s3://").partition("/")
        if self._store is None or bucket != self._store.bucket:
            raise MediaUnreadable("no object store is configured for this object")
        try:
            async for chunk in self._store.stream(key):
                yield chunk
        except ObjectMissing:
            raise MediaMissing(self._upload.blob_ref) from None
        except Exception as exc:
            raise MediaUnreadable(type(exc).__name__) from None


class UploadCache:
    """The platforms' ids of uploaded media: cached here, stored in the database."""

    def __init__(self, uploads: UploadRecords, store: MediaStore | None) -> None:
        self._uploads = uploads
        self._store = store
        self._ids: OrderedDict[tuple[str, ...], tuple[float, str]] = OrderedDict()
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    async def materials(
        self, claim: Claim, bot_id: str, items: Sequence[PlannedMedia], pause: Pause
    ) -> Mapping[str, Material]:
        """By ``blob_ref``. Bytes mean that this claim must upload them. Raises ``MediaMissing``."""
        kinds = {item.blob_ref: item.type for item in items if item.blob_ref}
        if (known := self._known(claim, bot_id, kinds)) is not None:
            return known
        lock = self._locks.setdefault(_key(claim, bot_id, *sorted(kinds)), asyncio.Lock())
        async with lock:  # one delivery of this process reads; the others get the result from the cache
            wait = SOON
            while (known := self._known(claim, bot_id, kinds)) is None:
                states = await self._uploads.take_uploads(claim, bot_id, kinds)
                self._learn(claim, bot_id, kinds, {one.blob_ref: one.provider_id for one in states if one.provider_id})
                if missing := [one.blob_ref for one in states if one.verdict == "missing"]:
                    raise MediaMissing(", ".join(missing))
                if all(one.verdict != "busy" for one in states):
                    return {one.blob_ref: one.provider_id or StoredBlob(self._store, one) for one in states}
                await pause(wait)
                wait = min(wait * 2, LATER)
        return known

    async def keep(self, claim: Claim, bot_id: str, held: Mapping[str, tuple[str, Held]]) -> None:
        """Store the platform's ids, by ``blob_ref``, with the kind of each upload.

        A database error costs another upload later, but not the message that the platform has accepted.
        """
        kinds = {ref: kind for ref, (kind, _) in held.items()}
        self._learn(claim, bot_id, kinds, {ref: one.provider_id for ref, (_, one) in held.items()})
        try:
            await self._uploads.keep_uploads(claim, bot_id, held)
        except Exception as exc:
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
