"""A request body that is streamed: its length is told beforehand, and it is never in memory as a whole.

A platform cannot accept a body that never became complete. So whatever its source raises before the last byte
is certain, and is kept as ``failure``; afterwards nothing is certain any more.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable

import msgspec
from aiohttp import Payload
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import StreamWriter


class StreamedBody(msgspec.Struct, frozen=True):
    """``open`` is called once, when there is a connection; its chunks bound the memory that is needed."""

    content_type: str
    length: int
    open: Callable[[], AsyncIterator[bytes]]


class Outgoing(Payload):
    """A ``StreamedBody`` on its way. The length is the law: a byte more or less breaks the connection."""

    _autoclose = True

    def __init__(self, body: StreamedBody) -> None:
        super().__init__(body, content_type=body.content_type)
        self._size = body.length
        self._body = body
        self._left = body.length
        self.failure: Exception | None = None
        self.failed_late = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._consumed = True
        chunks = self._checked()
        try:
            async for chunk in chunks:
                await writer.write(chunk)
        except BaseException:
            _break_off(writer)
            raise
        finally:
            await chunks.aclose()

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, None)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise TypeError("a streamed body is not text")

    async def _checked(self) -> AsyncGenerator[bytes, None]:
        try:
            chunks = self._body.open()
            try:
                async for chunk in chunks:
                    self._count(len(chunk))
                    yield chunk
            finally:
                await closed(chunks)
            if self._left:
                raise ValueError(f"the body ended {self._left} bytes too early")
        except Exception as exc:
            self.failed_late = not self._left
            self.failure = None if self.failed_late else exc
            raise

    def _count(self, size: int) -> None:
        if size > self._left:
            raise ValueError(f"the body is longer than the {self._body.length} bytes that were told")
        self._left -= size


def _break_off(writer: AbstractStreamWriter) -> None:
    """Closing would wait until a server that has stopped reading takes what is still buffered."""
    transport = writer.transport if isinstance(writer, StreamWriter) else None
    if transport is not None:
        transport.abort()


async def closed(chunks: AsyncIterator[bytes]) -> None:
    """Whoever reads a stream only halfway leaves nothing open behind."""
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
