"""Search for planted secrets, in all their encodings, in everything that a running system writes."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import nats
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from autopost_cli.embedded.places import postgres_programs
from harness.buckets import Bucket
from nats.js.errors import NotFoundError

if TYPE_CHECKING:
    import asyncpg

Haystacks = dict[str, bytes]


def forms(secret: str) -> Iterator[tuple[str, bytes]]:
    """Plain, as in a URL, as in a dump of bytes, and inside longer base64 at each of its three places."""
    plain = secret.encode()
    yield "plain", plain
    yield "url", quote(secret, safe="").encode()
    yield "url, lower case", re.sub("%..", lambda code: code[0].lower(), quote(secret, safe="")).encode()
    yield "hex", plain.hex().encode()
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + plain)
        certain = whole[-(-shift * 8 // 6) : (shift + len(plain)) * 8 // 6]  # the rest depends on the neighbours
        yield f"base64 at {shift}", certain
        yield f"base64url at {shift}", certain.translate(bytes.maketrans(b"+/", b"-_"))


def hits(secrets: dict[str, str], haystacks: Haystacks) -> list[str]:
    return [
        f"{name} in {place}, {form}"
        for name, secret in secrets.items()
        for form, needle in forms(secret)
        for place, hay in haystacks.items()
        if needle in hay
    ]


def record_answers(http: httpx.AsyncClient, other_than: str) -> list[bytes]:
    """Every answer from now on, head and body, but for those of this address."""
    answers: list[bytes] = []

    async def keep(response: httpx.Response) -> None:
        if not str(response.url).startswith(other_than):
            head = b"".join(name + b": " + value + b"\n" for name, value in response.headers.raw)
            answers.append(head + await response.aread())

    http.event_hooks = {"response": [keep]}
    return answers


@asynccontextmanager
async def overheard(nats_url: str, namespace: str) -> AsyncIterator[list[bytes]]:
    """What is said on the bus while this is open, whether a stream keeps it or not."""
    said: list[bytes] = []

    async def keep(message: Any) -> None:
        said.append(f"{message.subject} {message.headers}\n".encode() + message.data)

    client = await nats.connect(nats_url)
    try:
        await client.subscribe(f"{namespace}.>", cb=keep)
        await client.flush()
        yield said
        await client.flush()
    finally:
        await client.close()


async def streams(nats_url: str, namespace: str) -> bytes:
    """Every message of every stream of this namespace, one of many on its server."""
    client = await nats.connect(nats_url)
    try:
        js = client.jetstream()
        infos = [info async for info in _infos(js) if (info.config.name or "").startswith(namespace.upper())]
        found = [
            await _message(js, info.config.name or "", seq)
            for info in infos
            for seq in range(max(info.state.first_seq, 1), info.state.last_seq + 1)
        ]
    finally:
        await client.close()
    return b"\n".join(found)


async def _infos(js: Any) -> AsyncIterator[Any]:
    """The server lists 256 at a time."""
    seen = 0
    while page := await js.streams_info(seen):
        for info in page:
            yield info
        seen += len(page)


async def dump(database_url: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(postgres_programs(18, None) / "pg_dump", "--inserts", database_url), stdout=asyncio.subprocess.PIPE
    )
    text, _ = await process.communicate()
    assert process.returncode == 0
    return text


async def events(database: "asyncpg.Connection[Any]") -> bytes:
    return b"\n".join(row[0].encode() for row in await database.fetch("SELECT e::text FROM events AS e"))


async def objects(bucket: Bucket) -> bytes:
    """Every object with its name and what is said about it."""
    opened = get_session().create_client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name="us-east-1",
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
        config=AioConfig(s3={"addressing_style": "path"}),
    )
    found: list[bytes] = []
    async with opened as s3:
        async for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket.bucket):
            for entry in page.get("Contents", ()):
                answer = await s3.get_object(Bucket=bucket.bucket, Key=entry["Key"])
                about = f"{entry['Key']} {answer['Metadata']}\n".encode()
                async with answer["Body"] as body:
                    found.append(about + await body.read())
    return b"\n".join(found)


def files(folder: Path, other_than: str = "") -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.name != other_than)


async def _message(js: Any, stream: str, seq: int) -> bytes:
    try:
        message = await js.get_msg(stream, seq)
    except NotFoundError:  # a newer one of its subject took its place
        return b""
    return f"{message.subject} {message.headers}\n".encode() + (message.data or b"")
