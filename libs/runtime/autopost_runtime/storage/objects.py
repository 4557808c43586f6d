"""Objects in S3 or a compatible store, with bounded memory.

Importing the client takes as long as the rest of the start of a service. So it is imported in a thread, and the first
call waits for it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from autopost_runtime.config.load import ConfigError, Secret, ServiceConfig
from autopost_runtime.storage.encryption import Encryption

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from types_aiobotocore_s3 import S3Client
    from types_aiobotocore_s3.type_defs import CompletedPartTypeDef

PART = 8 * 1024 * 1024
CHUNK = 256 * 1024
_MISSING = frozenset({"404", "NoSuchKey", "NoSuchBucket", "NotFound"})
_MINE = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})


class ObjectMissing(Exception):  # noqa: N818  named for what happened
    """No object with this key."""


class Listed(NamedTuple):
    key: str
    modified: datetime


class S3Connection:
    """Connection to the store; the client is created on first use."""

    def __init__(self, endpoint: str, access_key: Secret, secret_key: Secret) -> None:
        self._endpoint = endpoint
        self._access_key = access_key
        self._secret_key = secret_key
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: S3Client | None = None

    async def client(self) -> "S3Client":
        async with self._opening:
            if self._client is None:
                self._client = await self._connect()
        return self._client

    async def load(self) -> None:
        """Never raises; the first call that uses the client gets the error."""
        with suppress(Exception):
            await self.client()

    async def close(self) -> None:
        await self._open.aclose()

    async def _connect(self) -> "S3Client":
        await asyncio.to_thread(_load)  # does not block the event loop
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session

        return await self._open.enter_async_context(
            get_session().create_client(
                "s3",
                region_name="us-east-1",
                endpoint_url=self._endpoint,
                aws_access_key_id=self._access_key.reveal(),
                aws_secret_access_key=self._secret_key.reveal(),
                config=AioConfig(
                    signature_version="s3v4",
                    s3={"addressing_style": "path"},
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    connect_timeout=3,
                    read_timeout=30,
                    retries={"total_max_attempts": 3, "mode": "standard"},
                    max_pool_connections=32,
                ),
            )
        )


def _load() -> None:
    import aiobotocore.session  # noqa: F401


class Objects:
    def __init__(self, store: S3Connection, bucket: str, encryption: Encryption) -> None:
        self._s3 = store.client
        self._encryption = encryption
        self.bucket = bucket

    async def put(
        self,
        key: str,
        body: bytes | AsyncIterator[bytes],
        content_type: str,
        *,
        encryption: Literal["AES256"] | None = None,
    ) -> None:
        """``encryption`` is required for this object and needs a ``bytes`` body; by default the config applies."""
        if not isinstance(body, bytes):
            await self._put_stream(key, body, content_type)
        elif encryption is None:
            s3 = await self._s3()
            await self._encryption.ask(
                lambda asked: s3.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=content_type, **asked),
                lambda _: self.delete(key),
            )
        else:
            await (await self._s3()).put_object(
                Bucket=self.bucket, Key=key, Body=body, ContentType=content_type, ServerSideEncryption=encryption
            )

    async def get(self, key: str) -> bytes:
        with _missing(key):
            answer = await (await self._s3()).get_object(Bucket=self.bucket, Key=key)
        async with answer["Body"] as body:
            return await body.read()

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        with _missing(key):
            answer = await (await self._s3()).get_object(Bucket=self.bucket, Key=key)
        async with answer["Body"] as body:
            async for chunk in body.iter_chunks(CHUNK):
                yield chunk

    async def delete(self, key: str) -> None:
        await (await self._s3()).delete_object(Bucket=self.bucket, Key=key)

    async def listed(self, prefix: str) -> AsyncIterator[Listed]:
        """Every object below ``prefix``, a thousand at a time."""
        pages = (await self._s3()).get_paginator("list_objects_v2")
        async for page in pages.paginate(Bucket=self.bucket, Prefix=prefix):
            for found in page.get("Contents", ()):
                yield Listed(found["Key"], found["LastModified"])

    async def folders(self, prefix: str = "") -> AsyncIterator[str]:
        """The common prefixes directly below ``prefix``, each with its slash."""
        pages = (await self._s3()).get_paginator("list_objects_v2")
        async for page in pages.paginate(Bucket=self.bucket, Prefix=prefix, Delimiter="/"):
            for found in page.get("CommonPrefixes", ()):
                yield found["Prefix"]

    async def exists(self, key: str) -> bool:
        try:
            with _missing(key):
                await (await self._s3()).head_object(Bucket=self.bucket, Key=key)
        except ObjectMissing:
            return False
        return True

    async def ensure_bucket(self) -> None:
        try:
            with _missing(self.bucket):
                await (await self._s3()).head_bucket(Bucket=self.bucket)
        except ObjectMissing:
            await self._create_bucket()

    async def presign(self, key: str, lifetime: timedelta) -> str:
        return await (await self._s3()).generate_presigned_url(
            "get_object", Params={"Bucket": self.bucket, "Key": key}, ExpiresIn=int(lifetime.total_seconds())
        )

    async def _create_bucket(self) -> None:
        from botocore.exceptions import ClientError

        try:
            await (await self._s3()).create_bucket(Bucket=self.bucket)
        except ClientError as exc:
            if _code(exc) not in _MINE:  # another replica was faster
                raise

    async def _put_stream(self, key: str, body: AsyncIterator[bytes], content_type: str) -> None:
        parts = _in_parts(body)
        first = await anext(parts, b"")
        if len(first) < PART:
            await self.put(key, first, content_type)
            return
        s3 = await self._s3()
        upload = await self._encryption.ask(
            lambda asked: s3.create_multipart_upload(Bucket=self.bucket, Key=key, ContentType=content_type, **asked),
            lambda begun: s3.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=begun["UploadId"]),
        )
        upload_id = upload["UploadId"]
        try:
            done = [await self._put_part(key, upload_id, 1, first)]
            async for part in parts:
                done.append(await self._put_part(key, upload_id, len(done) + 1, part))
            await (await self._s3()).complete_multipart_upload(
                Bucket=self.bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": done}
            )
        except BaseException:
            with suppress(Exception):  # the first error matters; the bucket's lifecycle rule removes the parts
                await (await self._s3()).abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
            raise

    async def _put_part(self, key: str, upload_id: str, number: int, body: bytes) -> "CompletedPartTypeDef":
        answer = await (await self._s3()).upload_part(
            Bucket=self.bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=body
        )
        return {"ETag": answer["ETag"], "PartNumber": number}


@asynccontextmanager
async def open_objects(config: ServiceConfig) -> AsyncIterator[Objects]:
    wanted = {
        "AUTOPOST_S3_ENDPOINT": config.s3_endpoint,
        "AUTOPOST_S3_ACCESS_KEY": config.s3_access_key,
        "AUTOPOST_S3_SECRET_KEY": config.s3_secret_key,
    }
    unset = [
        f"{name} is not set; it is required with AUTOPOST_S3_ENDPOINT"
        for name, value in wanted.items()
        if value is None
    ]
    if config.s3_endpoint is None or config.s3_access_key is None or config.s3_secret_key is None:
        raise ConfigError(unset)
    store = S3Connection(config.s3_endpoint, config.s3_access_key, config.s3_secret_key)
    loading = asyncio.create_task(store.load())
    try:
        yield Objects(store, config.s3_bucket, Encryption(config.s3_encryption))
    finally:
        await loading
        await store.close()


async def _in_parts(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """S3 refuses parts under 5 MiB, except the last."""
    gathered = bytearray()
    async for chunk in body:
        gathered += chunk
        while len(gathered) >= PART:
            yield bytes(gathered[:PART])
            del gathered[:PART]
    if gathered:
        yield bytes(gathered)


class _missing:  # noqa: N801  reads as a word in ``with _missing(key)``
    """Translates the "not found" errors of S3."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> None:
        if exc is None:
            return
        from botocore.exceptions import ClientError

        if isinstance(exc, ClientError) and _code(exc) in _MISSING:
            raise ObjectMissing(self._key) from None


def _code(exc: "ClientError") -> str:
    return str(exc.response.get("Error", {}).get("Code", ""))
