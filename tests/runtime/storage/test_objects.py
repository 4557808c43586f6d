"""Objects against a real S3 API."""

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import msgspec
import pytest
from autopost_runtime.config.load import ConfigError, Secret
from autopost_runtime.storage.objects import PART, ObjectMissing, Objects, open_objects


@pytest.fixture
def config(configure, s3):
    return configure(
        s3_endpoint=s3.endpoint,
        s3_bucket=s3.bucket,
        s3_access_key=Secret(s3.access_key),
        s3_secret_key=Secret(s3.secret_key),
    )


@pytest.fixture
async def objects(config) -> AsyncIterator[Objects]:
    async with open_objects(config) as opened:
        yield opened


async def pieces(*sizes: int) -> AsyncIterator[bytes]:
    for number, size in enumerate(sizes):
        yield bytes([number % 256]) * size


async def test_what_is_put_is_got(objects):
    await objects.put("media/привет.txt", b"hello", "text/plain")

    assert await objects.get("media/привет.txt") == b"hello"
    assert await objects.exists("media/привет.txt")


@pytest.mark.parametrize(
    "sizes", [(), (1,), (PART - 1, 1), (PART, 1), (PART // 2,) * 5], ids=["empty", "small", "one part", "two", "three"]
)
async def test_a_stream_of_any_size_arrives_whole(objects, sizes):
    await objects.put("stream", pieces(*sizes), "application/octet-stream")

    expected, got = hashlib.sha256(), hashlib.sha256()
    async for piece in pieces(*sizes):
        expected.update(piece)
    async for chunk in objects.stream("stream"):
        got.update(chunk)
    assert got.digest() == expected.digest()


async def test_a_stream_that_breaks_leaves_no_object(objects):
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * PART
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await objects.put("broken", broken(), "video/mp4")

    assert not await objects.exists("broken")


async def test_a_missing_object_is_said_so(objects):
    with pytest.raises(ObjectMissing):
        await objects.get("nothing")
    with pytest.raises(ObjectMissing):
        await anext(objects.stream("nothing"))
    assert not await objects.exists("nothing")


async def test_deleting_twice_is_deleting(objects):
    await objects.put("gone", b"x", "text/plain")

    await objects.delete("gone")
    await objects.delete("gone")

    assert not await objects.exists("gone")


async def test_a_bucket_is_made_once(config):
    async with open_objects(msgspec.structs.replace(config, s3_bucket=f"{config.s3_bucket}-new")) as objects:
        await objects.ensure_bucket()
        await objects.ensure_bucket()
        await objects.put("x", b"1", "text/plain")

        assert await objects.get("x") == b"1"


async def test_a_presigned_url_opens_the_object_without_keys(objects):
    await objects.put("shared", b"see", "text/plain")

    url = await objects.presign("shared", timedelta(minutes=1))

    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert await answer.read() == b"see"


async def test_without_an_endpoint_the_missing_variables_are_named(configure):
    with pytest.raises(ConfigError, match="AUTOPOST_S3_ENDPOINT"):
        async with open_objects(configure()):
            pass


async def test_many_who_come_first_open_one_client(objects):
    clients = await asyncio.gather(*(objects._s3() for _ in range(8)))

    assert len({id(client) for client in clients}) == 1


@pytest.mark.parametrize("service", ["ingest", "dispatcher", "monitor", "bot"])
def test_a_service_starts_without_the_client(service):
    """It takes as long to load as all the rest."""
    look = f"import sys, autopost_{service}.__main__; sys.exit('botocore' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", look]).returncode == 0
