"""Send a request with a complete body in one write over a pooled aiohttp connection.

A platform call needs no redirects, cookies, proxies or middlewares, which are more than half of the cost of a session
request. aiohttp still handles the pool, TLS and the parsing of responses, and its errors stay the same.
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


class ResponseTooLarge(Exception):  # noqa: N818  named for what happened
    """The response body exceeds the limit."""


class RawRequests:
    """``at_most``: bytes of a response body."""

    def __init__(self, session: aiohttp.ClientSession, at_most: int) -> None:
        self._session = session
        self._at_most = at_most
        self._request_for = lru_cache(maxsize=256)(self._request_to)

    async def send(
        self, method: str, url: URL, body: bytes, headers: Mapping[str, str], limits: aiohttp.ClientTimeout
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body. A connection with unread bytes is not reused."""
        request = _head(method, url, headers, len(body)) + body
        async with asyncio.timeout(limits.total):
            connection = await self._connect(url, limits)
            try:
                answer = await self._exchange(connection, request)
            except BaseException:
                connection.close()
                raise
            connection.release()
            return answer

    async def _connect(self, url: URL, limits: aiohttp.ClientTimeout) -> aiohttp.connector.Connection:
        if self._session.connector is None:
            raise RuntimeError("the HTTP session is closed")
        try:
            return await self._session.connector.connect(self._request_for(url.origin()), [], limits)
        except TimeoutError:
            raise aiohttp.ConnectionTimeoutError from None

    def _request_to(self, origin: URL) -> aiohttp.ClientRequest:
        """The request that the connector needs; without a path, which may be secret."""
        return aiohttp.ClientRequest("POST", origin, loop=asyncio.get_running_loop(), session=self._session)

    async def _exchange(
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
            raise ResponseTooLarge
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _final(protocol: ResponseHandler) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """The final response, after any 1xx."""
    try:
        while True:
            message, content = await protocol.read()
            if not 100 <= message.code < 200 or message.code == 101:
                return message, content
    except HttpProcessingError:
        raise aiohttp.ClientPayloadError from None


def _head(method: str, url: URL, headers: Mapping[str, str], length: int) -> bytes:
    """Raises ``ValueError`` for control characters, which could start another header line."""
    path = url.raw_path_qs
    given = [f"{name}: {value}" for name, value in headers.items()]
    if any(map(_UNSAFE.search, (path, *given))):
        raise ValueError("the path or a header contains a control character")
    host, lines = url.host_port_subcomponent, "\r\n".join(given)
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{_ALWAYS}Content-Length: {length}\r\n{lines}\r\n\r\n".encode()
