"""What one client of a chat has still to be sent: a bounded list of frames, each encoded once for all clients."""

import asyncio
from collections.abc import Callable

from autopost_runtime.telemetry import metrics

MOST_FRAMES = 64

dropped = metrics.counter("autopost_chat_stream_dropped_total", "Clients dropped by reason.")


class Subscription:
    """``abort`` ends the connection of a client that does not take what it is sent; it resumes when it returns."""

    __slots__ = ("_abort", "_closed", "_frames", "_waiter", "position")

    def __init__(self, abort: Callable[[], None]) -> None:
        self.position = -1
        """The highest number put into the list."""
        self._frames: list[tuple[int, bytes]] = []
        self._abort = abort
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, seq: int, frame: bytes) -> None:
        if seq <= self.position or self._closed:
            return
        if len(self._frames) >= MOST_FRAMES:
            self.drop("slow")
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

    def drop(self, reason: str) -> None:
        dropped.add(1, {"reason": reason})
        self.close()
        self._abort()

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
