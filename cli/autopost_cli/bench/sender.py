"""A sender that costs next to nothing: one connection, one request after another, no more of HTTP than that takes.

What it shares the machine with is what is measured, so a full client, as expensive as the server, will not do.
"""

import asyncio
import re
from typing import Self, cast
from urllib.parse import urlsplit

from autopost_cli.bench.arena import BenchError

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Sender(asyncio.Protocol):
    def __init__(self, head: bytes) -> None:
        self._head = head
        self._transport: asyncio.Transport
        self._received = b""
        self._answer: asyncio.Future[int] | None = None

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
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(self._head + str(len(body)).encode() + _END + body)
        return await self._answer

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(_END)
        if end and len(body) >= _length(head) and self._answer is not None:
            self._received = b""
            self._answer.set_result(int(head[9:12]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(BenchError("the connection was lost while an answer was awaited"))


def _length(head: bytes) -> int:
    said = _LENGTH.search(head)
    if said is None:
        raise BenchError("an answer came without its length")
    return int(said[1])
