"""A sender that costs next to nothing: one connection, one request after another, no more of HTTP than that takes.

What it shares the machine with is what is measured, so a full client, as expensive as the server, will not do.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Self, cast
from urllib.parse import urlsplit

from autopost_bench.machine.server import BenchError

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Sender(asyncio.Protocol):
    def __init__(self, head: bytes) -> None:
        self._head = head
        self._transport: asyncio.Transport
        self._received = b""
        self._bodies: Iterator[bytes] = iter(())
        self._tell: Callable[[int], None]
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._done.set_result(None)

    @classmethod
    async def to(cls, url: str, **headers: str) -> Self:
        """``url`` names the place as well."""
        parts = urlsplit(url)
        lines = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "Content-Length: "]).encode()
        place = (parts.hostname or "", parts.port or 80)
        _, sender = await asyncio.get_running_loop().create_connection(lambda: cls(head), *place)
        return sender

    async def post(self, body: bytes) -> int:
        """The status of the answer."""
        statuses: list[int] = []
        await self.post_all(iter([body]), statuses.append)
        return statuses[0]

    async def post_all(self, bodies: Iterator[bytes], tell: Callable[[int], None]) -> None:
        """Each as soon as the one before is answered, and not a turn of the loop later; ``tell`` hears every status."""
        self._bodies, self._tell = bodies, tell
        self._done = asyncio.get_running_loop().create_future()
        self._post_next()
        await self._done

    def _post_next(self) -> None:
        body = next(self._bodies, None)
        if body is None:
            self._done.set_result(None)
        else:
            self._transport.write(b"%b%d%b%b" % (self._head, len(body), _END, body))

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(_END)
        if end and len(body) >= _length(head):
            self._received = b""
            self._tell(int(head[9:12]))
            self._post_next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(BenchError("the connection was lost while an answer was awaited"))


def _length(head: bytes) -> int:
    said = _LENGTH.search(head)
    if said is None:
        raise BenchError("an answer came without its length")
    return int(said[1])
