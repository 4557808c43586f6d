"""Streamed request bodies: the length is announced first, and the whole body is never in memory.

A platform cannot accept an incomplete body. So an error of the source before the last byte means "not sent" and is kept
as ``failure``; after the last byte the outcome is unknown.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable

import msgspec
from aiohttp import Payload
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import StreamWriter


class StreamedBody(msgspec.Struct, frozen=True):
    """``open`` is called once, when there is a connection. Memory is bounded by the size of its chunks."""

    content_type: str
    length: int
    open: Callable[[], AsyncIterator[bytes]]


class StreamedPayload(Payload):
    """Writes a ``StreamedBody``. A byte more or less than the announced length breaks the connection."""

    def __init__(self, body: StreamedBody) -> None:
        super().__init__(body, content_type=body.content_type)
        self._body = body
        self._left = body.length
        self._started = False
        self.failure: Exception | None = None
        self.failed_late = False

    @property
    def size(self) -> int:
        return self._body.length

    @property
    def consumed(self) -> bool:
        return self._started

    @property
    def autoclose(self) -> bool:
        """There is nothing to close: each write opens the source and closes it."""
        return True

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._started = True
        chunks = self._checked()
        try:
            async for chunk in chunks:
                await writer.write(chunk)
        except BaseException:
            _abort(writer)
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
                raise ValueError(f"the body is {self._left} bytes shorter than announced")
        except Exception as exc:
            self.failed_late = not self._left
            self.failure = None if self.failed_late else exc
            raise

    def _count(self, size: int) -> None:
        if size > self._left:
            raise ValueError(f"the body is longer than the announced {self._body.length} bytes")
        self._left -= size


def _abort(writer: AbstractStreamWriter) -> None:
    """Closing would wait until a server that stopped reading takes the buffered bytes."""
    transport = writer.transport if isinstance(writer, StreamWriter) else None
    if transport is not None:
        transport.abort()


async def closed(chunks: AsyncIterator[bytes]) -> None:
    """Close a stream that was read only in part."""
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
