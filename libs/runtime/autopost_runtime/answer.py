"""An answer that is whole before it is sent: head and body are put together here and written in one piece.

aiohttp's own response asks and tells a dozen objects on its way, which for a few hundred bytes costs more than to send
them. What goes over the wire is the same.
"""

from http import HTTPStatus

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE, HttpVersion11

_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Answer(web.StreamResponse):
    """For anything but HEAD; ``headers`` cannot be added to it."""

    def __init__(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        super().__init__(status=status, reason=_REASONS[status])
        self._content = body
        self._kind = content_type

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        writer = self._payload_writer = request.writer
        await writer.write(self._head(request).encode() + self._content)
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        if self._payload_writer is not None:
            await self._payload_writer.write_eof(data)
            self._eof_sent, self._payload_writer = True, None

    def _head(self, request: web.BaseRequest) -> str:
        version = request.version
        connection = ""
        if version != HttpVersion11 and self._keep_alive:
            connection = "Connection: keep-alive\r\n"
        elif version == HttpVersion11 and not self._keep_alive:
            connection = "Connection: close\r\n"
        return (
            f"HTTP/{version.major}.{version.minor} {self._status} {self._reason}\r\n"
            f"Content-Type: {self._kind}\r\nContent-Length: {len(self._content)}\r\n"
            f"Date: {rfc822_formatted_time()}\r\nServer: {SERVER_SOFTWARE}\r\n{connection}\r\n"
        )
