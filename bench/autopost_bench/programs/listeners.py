"""Many clients of streams in one process, on bare sockets, that remember when each event came.

``listeners URL PATH SECRET COUNT``: ``{}`` in the path is the number of the client. It says "ready" when all are
connected. It is asked by lines: "expect N" answers with the moments at which the next N events came, on the system's
monotonic clock; "alive" answers how many clients are connected, once each has heard a keep-alive. It ends when its
standard input does.
"""

import asyncio
import os
import resource
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import msgspec

AT_ONCE = 100


class Clients:
    def __init__(self) -> None:
        self.connected: set[Client] = set()
        self.arrivals: list[float] = []
        self.changed = asyncio.Event()

    async def next_change(self) -> None:
        self.changed.clear()
        await self.changed.wait()

    async def expect(self, count: int) -> list[float]:
        while len(self.arrivals) < count:
            await self.next_change()
        found, self.arrivals = self.arrivals[:count], self.arrivals[count:]
        return found

    async def alive(self) -> int:
        while not all(client.heard_keep_alive for client in self.connected):
            await self.next_change()
        return len(self.connected)


class Client(asyncio.Protocol):
    __slots__ = ("_clients", "_request", "_transport", "began", "heard_keep_alive")

    def __init__(self, clients: Clients, request: bytes) -> None:
        self._clients = clients
        self._request = request
        self._transport: asyncio.Transport
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard_keep_alive = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if b"data: " in data:
            self._clients.arrivals.append(time.monotonic())
        elif b": keep-alive" in data:
            self.heard_keep_alive = True
        if b": connected" in data:
            self._clients.connected.add(self)
            self.began.set_result(None)
        self._clients.changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clients.connected.discard(self)
        self._clients.changed.set()
        if not self.began.done():
            self.began.set_exception(ConnectionError("a stream ended before it began"))


async def connect(clients: Clients, url: str, path: str, secret: str, count: int) -> None:
    parts = urlsplit(url)
    place = (parts.hostname or "", parts.port or 80)

    async def one(number: int) -> None:
        head = f"GET {path.format(number)} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {secret}\r\n\r\n"
        _, client = await asyncio.get_running_loop().create_connection(lambda: Client(clients, head.encode()), *place)
        await client.began

    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(first, min(first + AT_ONCE, count))))


async def main(url: str, path: str, secret: str, count: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = Clients()
    await connect(clients, url, path, secret, int(count))
    os.write(1, b"ready\n")
    while line := await asyncio.to_thread(sys.stdin.readline):
        match line.split():
            case ["expect", number]:
                answer = msgspec.json.encode(await clients.expect(int(number)))
            case _:
                answer = msgspec.json.encode(await clients.alive())
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(*sys.argv[1:5]))
