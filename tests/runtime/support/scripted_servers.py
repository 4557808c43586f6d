"""Raw servers with scripted responses, and a call to one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from autopost_runtime.http.client import HttpAnswer, HttpClient
from runtime.support.canary import CANARY

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LIMIT = timedelta(seconds=5)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Kept: yes\r\n\r\n{}"


@contextlib.asynccontextmanager
async def server(talk: Talk) -> AsyncIterator[str]:
    """Raw bytes, because what matters is what no well-behaved server does."""

    talks: set[asyncio.Task[None]] = set()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with await asyncio.start_server(meet, "127.0.0.1", 0) as running:
        yield f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}"
        await asyncio.gather(*talks)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    return head + await reader.readexactly(int(length.split(b":")[1]))


async def call(url: str, **options: object) -> HttpAnswer:
    async with HttpClient() as client:
        return await client.request(
            "POST", f"{url}/bot{CANARY}/sendMessage", **{"json": {"text": "hi"}, "timeout": LIMIT, **options}
        )


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[HttpClient]:
    """Whose next call takes a connection that is there already: no part of its time goes into making one."""
    async with HttpClient() as client:
        await client.request("POST", url, json={}, timeout=LIMIT)
        yield client


def answering(raw: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(raw)
        await writer.drain()

    return talk


async def reset_before_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def reset_after_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.transport.abort()


async def close_after_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    await reader.read()  # until the client gives up


async def answer_then_hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await answering(OK)(reader, writer)
    await reader.read(1)
    await everything(reader)


async def hang_up_when_done(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await everything(reader)


async def everything(reader: asyncio.StreamReader) -> bytes:
    """Until the client hangs up, however rudely."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(1024 * 1024):
            got += chunk
    return got
