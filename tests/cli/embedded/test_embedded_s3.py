"""The embedded S3 server, spoken to by a real client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import ClientError
from harness.buckets import Bucket

PATH_STYLE = AioConfig(
    signature_version="s3v4",
    s3={"addressing_style": "path"},
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)


@asynccontextmanager
async def client(bucket: Bucket, secret: str) -> AsyncIterator[Any]:
    async with get_session().create_client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name="us-east-1",
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=secret,
        config=PATH_STYLE,
    ) as made:
        yield made


async def test_an_object_can_be_put_and_read_in_a_bucket_of_the_tests_own(s3: Bucket) -> None:
    async with client(s3, s3.secret_key) as objects:
        await objects.put_object(Bucket=s3.bucket, Key="a/photo.jpg", Body=b"jpeg" * 1000)
        answer = await objects.get_object(Bucket=s3.bucket, Key="a/photo.jpg")

        assert await answer["Body"].read() == b"jpeg" * 1000


async def test_a_wrong_key_is_refused(s3: Bucket) -> None:
    async with client(s3, "not-the-secret") as objects:
        with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
            await objects.list_objects_v2(Bucket=s3.bucket)
