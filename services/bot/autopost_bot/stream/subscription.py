"""What one client of a chat has still to be sent: a bounded list of frames, each encoded once for all clients."""

import asyncio
from collections.abc import Callable

MOST_FRAMES = 64


class Subscription:
    """``overflow`` is called once when the client does not keep up; it is then dropped, and resumes when it returns."""

    __slots__ = ("_closed", "_frames", "_overflow", "_waiter", "position")

    def __init__(self, overflow: Callable[[], None]) -> None:
        self.position = -1
        """The highest number put into the list."""
        self._frames: list[tuple[int, bytes]] = []
        self._overflow = overflow
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, seq: int, frame: bytes) -> None:
        if seq <= self.position or self._closed:
            return
        if len(self._frames) >= MOST_FRAMES:
            self.close()
            self._overflow()
            return
        self.position = seq
        self._frames.append((seq, frame))
        self._wake()

    def begin_at(self, seq: int) -> None:
        """The client knows everything up to ``seq``."""
        self._frames = [(number, frame) for number, frame in self._frames if number > seq]
        self.position = max(seq, self._frames[-1][0] if self._frames else seq)

    def close(self) -> None:
        self._closed = True
        self._wake()

    async def next(self, within: float) -> bytes | None:
        """All frames that wait, empty after a time without any; ``None`` when the stream is over."""
        if not self._frames and not self._closed:
            await self._wait(within)
        if self._closed:
            return None
        frames, self._frames = self._frames, []
        return b"".join(frame for _, frame in frames)

    async def _wait(self, within: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(within, self._wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
