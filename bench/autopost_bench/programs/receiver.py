"""A provider that only says yes, and remembers when each call came.

Written on bare sockets: a web framework would cost more than the client that is measured against it. And a call has
come when the system has it: this process may be kept from looking, for longer than rates forgive, and then finds in one
moment what came one after another. Run as a program it says its port and ends when its standard input does.
"""

import asyncio
import os
import re
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from autopost_cli.embedded.ports import HOST
from msgspec import Struct

TELEGRAM = b'{"ok":true,"result":{"message_id":1,"date":1,"chat":{"id":1,"type":"channel"}}}'
MAX = b'{"message":{"recipient":{"chat_id":1},"timestamp":1,"body":{"mid":"mid.1","seq":1,"text":""}}}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
CHAT = re.compile(rb'"chat_id": *"?(-?\d+)')
END = b"\r\n\r\n"
TIMESTAMPS = 35
"""SO_TIMESTAMPNS of Linux, for which Python has no name: what is received brings the time when it was."""
TIMESPEC = struct.Struct("qq")


class Arrival(Struct, frozen=True):
    at: float
    """On this process's monotonic clock."""
    chat: str


class Receiver:
    def __init__(self, *, remembers: bool = True, silent: str = "", body: bytes = TELEGRAM) -> None:
        self.answer = ANSWER % (len(body), body)
        self.arrivals: list[Arrival] = []
        self._remembers = remembers
        self.silent = silent.encode()
        self._waiting: asyncio.Future[float] | None = None
        self._awaited = ""
        self.url = ""

    def next_arrival(self, chat: str = "") -> "asyncio.Future[float]":
        """When the next call comes, or the next one for this chat; ask before what leads to it."""
        self._awaited = chat
        self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def take(self, body: bytes, at: float) -> None:
        if self._remembers:
            found = CHAT.search(body)
            self.arrivals.append(Arrival(at, found[1].decode() if found else ""))
        if self._waiting and not self._waiting.done() and self._awaited.encode() in body:
            self._waiting.set_result(at)


class Exchange:
    """One connection, kept alive; requests may come in pieces and several at once."""

    def __init__(self, receiver: Receiver, connection: socket.socket) -> None:
        self._receiver = receiver
        self._connection = connection
        self._buffer = b""
        asyncio.get_running_loop().add_reader(connection, self._read)

    def close(self) -> None:
        if self._connection.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._connection)
            self._connection.close()

    def _read(self) -> None:
        try:
            data, told, _, _ = self._connection.recvmsg(1 << 16, socket.CMSG_SPACE(TIMESPEC.size))
        except BlockingIOError:
            return
        except ConnectionError:
            data, told = b"", []
        if not data:
            self.close()
            return
        self._buffer += data
        at = time.monotonic() - _ago(told)
        while (head := self._buffer.find(END)) >= 0:
            length = LENGTH.search(self._buffer, 0, head)
            end = head + len(END) + (int(length[1]) if length else 0)
            if len(self._buffer) < end:
                return
            is_silent = self._receiver.silent and self._buffer.startswith(self._receiver.silent)
            self._receiver.take(self._buffer[head:end], at)
            self._buffer = self._buffer[end:]
            if is_silent:
                continue
            with suppress(ConnectionError):
                self._connection.send(self._receiver.answer)


def _ago(told: Sequence[tuple[int, int, bytes]]) -> float:
    """Seconds since the system had it; none where it does not tell."""
    for level, kind, value in told:
        if (level, kind) == (socket.SOL_SOCKET, TIMESTAMPS):
            seconds, nanoseconds = TIMESPEC.unpack(value)
            ago: float = time.time() - seconds - nanoseconds / 1e9
            return max(0.0, ago)
    return 0.0


@asynccontextmanager
async def receiving(*, remembers: bool = True, silent: str = "", body: bytes = TELEGRAM) -> AsyncIterator[Receiver]:
    """``silent``: how requests begin that it never answers; ``body``: what it answers the others."""
    receiver = Receiver(remembers=remembers, silent=silent, body=body)
    listener = socket.create_server((HOST, 0), backlog=1024)
    listener.setblocking(False)
    if sys.platform == "linux":
        listener.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)  # its connections inherit it
    receiver.url = f"http://{HOST}:{listener.getsockname()[1]}"
    open_ones: list[Exchange] = []
    accepting = asyncio.create_task(_accept(listener, receiver, open_ones))
    try:
        yield receiver
    finally:
        accepting.cancel()
        await asyncio.wait([accepting])
        for exchange in open_ones:
            exchange.close()
        listener.close()


async def _accept(listener: socket.socket, receiver: Receiver, open_ones: list[Exchange]) -> None:
    while True:
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        open_ones.append(Exchange(receiver, connection))


async def live() -> None:
    async with receiving(remembers=False) as receiver:
        os.write(1, f"{receiver.url}\n".encode())
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    import uvloop

    uvloop.run(live())
