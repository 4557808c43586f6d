"""What is sent of a stored object is what was stored, or it is not sent to its end."""

from collections.abc import AsyncIterator
from hashlib import sha256

import pytest
from autopost_adapters.base import MediaMissing, MediaUnreadable
from autopost_dispatcher.gateway import UploadState
from autopost_dispatcher.send.uploads import StoredBlob
from autopost_runtime.storage.objects import ObjectMissing

BODY = b"0123456789"


class Store:
    bucket = "bucket"

    def __init__(self, *chunks: bytes | Exception) -> None:
        self._chunks = chunks

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


def stored(*chunks: bytes | Exception, origin: str = "s3://bucket/key") -> StoredBlob:
    upload = UploadState(
        blob_ref="sha256:x",
        verdict="ours",
        provider_id=None,
        origin_url=origin,
        sha256=sha256(BODY).hexdigest(),
        content_type=None,
        size_bytes=len(BODY),
        name=None,
    )
    return StoredBlob(Store(*chunks), upload)


async def test_the_bytes_come_as_they_were_stored() -> None:
    assert b"".join([chunk async for chunk in stored(BODY[:4], BODY[4:]).open()]) == BODY


@pytest.mark.parametrize(
    "chunks",
    [(BODY[:4],), (BODY[:4], b"X" * 6), (BODY, b"more"), (), (BODY[:4], OSError("gone")), (TimeoutError(),)],
    ids=["cut off", "other bytes", "too many", "nothing", "broken off", "unreachable"],
)
async def test_a_changed_object_is_never_read_to_its_end(chunks: tuple[bytes | Exception, ...]) -> None:
    given = b""

    with pytest.raises(MediaUnreadable):
        async for chunk in stored(*chunks).open():
            given += chunk

    assert len(given) < len(BODY)


async def test_a_deleted_object_raises_media_missing() -> None:
    with pytest.raises(MediaMissing):
        [_ async for _ in stored(ObjectMissing("key")).open()]


async def test_an_object_in_another_bucket_is_unreadable() -> None:
    with pytest.raises(MediaUnreadable):
        [_ async for _ in stored(BODY, origin="s3://elsewhere/key").open()]
