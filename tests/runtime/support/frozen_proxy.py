"""TCP proxy that can stop forwarding without closing its connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class Freezer:
    """Passes bytes on to Postgres; frozen, it closes nothing and delivers nothing."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.hides_the_end = False
        """The server's last words are passed on, and that it has closed is not."""

    def freeze(self) -> None:
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    @property
    def url(self) -> str:
        user = self._target.username
        return self._target._replace(netloc=f"{user}@127.0.0.1:{self.port}").geturl()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Freezer"]:
        async with await asyncio.start_server(self._meet, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield self
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        there_reader, there_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))
        finally:
            for end in (writer, there_writer):
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
            if not self.hides_the_end:
                writer.close()
