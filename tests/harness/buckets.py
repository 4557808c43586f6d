"""A bucket per test, made the way any S3 client would."""

from uuid import uuid4

import msgspec


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket that nobody else uses, and how to reach it."""

    endpoint: str
    access_key: str
    secret_key: str
    bucket: str


async def make_bucket(endpoint: str, access_key: str, secret_key: str) -> Bucket:
    from aiobotocore.config import AioConfig  # half a second to load, and few tests need it
    from aiobotocore.session import get_session

    name = f"test-{uuid4().hex[:12]}"
    client = get_session().create_client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        config=AioConfig(s3={"addressing_style": "path"}),
    )
    async with client as s3:
        await s3.create_bucket(Bucket=name)
    return Bucket(endpoint=endpoint, access_key=access_key, secret_key=secret_key, bucket=name)
