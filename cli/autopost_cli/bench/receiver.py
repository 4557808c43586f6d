"""A provider that only says yes, and remembers when each call came.

Written on a bare protocol: a web framework would cost more than the client that is measured against it. Run as a
program it says its port and ends when its standard input does.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from msgspec import Struct

from autopost_cli.embedded.ports import HOST

BODY = b'{"ok":true,"result":{"message_id":1,"date":1,"chat":{"id":1,"type":"channel"}}}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
CHAT = re.compile(rb'"chat_id": *"?(-?\d+)')
END = b"\r\n\r\n"


class Arrival(Struct, frozen=True):
    at: float
    """On this process's monotonic clock."""
    chat: str


class Receiver:
    def __init__(self, *, remembers: bool = True) -> None:
        self.arrivals: list[Arrival] = []
        self._remembers = remembers
        self._waiting: asyncio.Future[float] | None = None
        self.url = ""

    def next_arrival(self) -> "asyncio.Future[float]":
        """When the next call comes; ask before what leads to it."""
        self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def take(self, body: bytes) -> None:
        now = time.monotonic()
        if self._remembers:
            found = CHAT.search(body)
            self.arrivals.append(Arrival(now, found[1].decode() if found else ""))
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(now)


class Exchange(asyncio.Protocol):
    """One connection, kept alive; requests may come in pieces and several at once."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (head := self._buffer.find(END)) >= 0:
            length = LENGTH.search(self._buffer, 0, head)
            end = head + len(END) + (int(length[1]) if length else 0)
            if len(self._buffer) < end:
                return
            self._receiver.take(self._buffer[head:end])
            self._buffer = self._buffer[end:]
            self._transport.write(ANSWER)


@asynccontextmanager
async def receiving(*, remembers: bool = True) -> AsyncIterator[Receiver]:
    receiver = Receiver(remembers=remembers)
    server = await asyncio.get_running_loop().create_server(lambda: Exchange(receiver), HOST, 0, backlog=1024)
    receiver.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    try:
        yield receiver
    finally:
        server.close()


async def live() -> None:
    async with receiving(remembers=False) as receiver:
        os.write(1, f"{receiver.url}\n".encode())
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    import uvloop

    uvloop.run(live())
