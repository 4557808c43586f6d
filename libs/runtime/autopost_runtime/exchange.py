"""One request whose body is in hand, and its answer: one write into a connection of aiohttp's pool, read by its parser.

A session is ready for redirects, cookies, proxies, middlewares and bodies that stream, and writes every body in a task
of its own. A provider call needs nothing of that, and it was more than half of what a call cost. Connecting, TLS, the
pool and the reading of answers stay aiohttp's, and what goes wrong is told by the errors that a session raises.
"""

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from yarl import URL

_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_ALWAYS = "User-Agent: autopost\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"


class TooBig(Exception):  # noqa: N818  named for what happened
    """The answer is longer than anybody wants to read."""


class Exchange:
    """``at_most``: bytes of an answer's body."""

    def __init__(self, session: aiohttp.ClientSession, at_most: int) -> None:
        self._session = session
        self._at_most = at_most
        self._towards = lru_cache(maxsize=256)(self._request_to)

    async def send(
        self, method: str, url: URL, body: bytes, headers: Mapping[str, str], limits: aiohttp.ClientTimeout
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body. A connection that was not read to the end of the answer is never used again."""
        request = _head(method, url, headers, len(body)) + body
        async with asyncio.timeout(limits.total):
            connection = await self._connect(url, limits)
            try:
                answer = await self._talk(connection, request)
            except BaseException:
                connection.close()
                raise
            connection.release()
            return answer

    async def _connect(self, url: URL, limits: aiohttp.ClientTimeout) -> aiohttp.connector.Connection:
        if self._session.connector is None:
            raise RuntimeError("the session is closed")
        try:
            return await self._session.connector.connect(self._towards(url.origin()), [], limits)
        except TimeoutError:
            raise aiohttp.ConnectionTimeoutError from None

    def _request_to(self, origin: URL) -> aiohttp.ClientRequest:
        """All that a connector wants to know of a request; it holds no path, which may be a secret."""
        return aiohttp.ClientRequest("POST", origin, loop=asyncio.get_running_loop(), session=self._session)

    async def _talk(
        self, connection: aiohttp.connector.Connection, request: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError
        protocol.set_response_params(read_until_eof=True)
        transport.write(request)
        message, content = await _final(protocol)
        return message.code, message.headers, await read_all(content, self._at_most)


async def read_all(content: aiohttp.StreamReader, at_most: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := await content.readany():
        size += len(chunk)
        if size > at_most:
            raise TooBig
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _final(protocol: ResponseHandler) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """The answer itself, after any that only asks for patience."""
    try:
        while True:
            message, content = await protocol.read()
            if not 100 <= message.code < 200 or message.code == 101:
                return message, content
    except HttpProcessingError:
        raise aiohttp.ClientPayloadError from None


def _head(method: str, url: URL, headers: Mapping[str, str], length: int) -> bytes:
    """Raises ``ValueError`` for what would begin another line."""
    path = url.raw_path_qs
    given = [f"{name}: {value}" for name, value in headers.items()]
    if any(map(_UNSAFE.search, (path, *given))):
        raise ValueError("a path or a header holds a control character")
    host, lines = url.host_port_subcomponent, "\r\n".join(given)
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{_ALWAYS}Content-Length: {length}\r\n{lines}\r\n\r\n".encode()
