"""Programs of the bench's own that run beside it, told what to do through a pipe; they end when the pipe does."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping

from autopost_bench.machine.server import BenchError

PATIENCE = 30.0


class Child:
    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self._name = name
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self) -> str:
        """Its next line."""
        assert self._process.stdout  # noqa: S101 -- for the type checker
        async with asyncio.timeout(PATIENCE):
            line = await self._process.stdout.readline()
        if not line:
            raise BenchError(f"{self._name} ended before its time; what it said is above")
        return line.decode().strip()

    async def expect(self, word: str) -> None:
        """Skips what it says before."""
        while await self.read() != word:
            pass

    def tell(self, word: str) -> None:
        assert self._process.stdin  # noqa: S101 -- for the type checker
        self._process.stdin.write(f"{word}\n".encode())

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def end(self) -> None:
        assert self._process.stdin  # noqa: S101 -- for the type checker
        self._process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._process.communicate()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@contextlib.asynccontextmanager
async def child(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Child]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"autopost_bench.programs.{module}", *arguments),
        env={**os.environ, **(env or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    running = Child(module, process)
    try:
        yield running
    finally:
        await running.end()
