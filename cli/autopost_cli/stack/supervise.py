"""Keep a program running: restart it when it ends, at once first, then with growing delays.

Exit code 2 means that the program rejected its configuration. A restart would
not help, so the supervisor gives up and shows the output.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from autopost_cli.embedded.processes import BackendError
from autopost_cli.embedded.program import Program, Shutdown

BAD_CONFIGURATION = 2
Report = Callable[[str], None]
Restarted = Callable[[], Awaitable[None]]


class RefusedError(Exception):
    """A service rejected its configuration; the text is its output."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(f"{name} cannot start with this configuration:\n{said}")


@dataclass
class RestartBackoff:
    """0, 0.2, 0.4 … 5 s; reset after a program has run for a while."""

    first: timedelta = timedelta(seconds=0.2)
    longest: timedelta = timedelta(seconds=5)
    forgotten_after: timedelta = timedelta(seconds=10)
    restarts: int = field(default=0, init=False)

    def next(self, lived: timedelta) -> timedelta:
        if lived >= self.forgotten_after:
            self.restarts = 0
        self.restarts += 1
        if self.restarts == 1:
            return timedelta()
        return min(self.first * (1 << min(self.restarts - 2, 20)), self.longest)


class Supervisor:
    """Starts, restarts and stops one program. ``restarted`` runs after each restart of its own."""

    def __init__(
        self, program: Program, report: Report, refusal: asyncio.Future[None], restarted: Restarted | None = None
    ) -> None:
        self.program = program
        self._restarted = restarted
        self._report = report
        self._refusal = refusal
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """A backend is awaited and fails at once; a service is supervised from the start, see ``ready``."""
        if self.program.is_service:
            await self.program.spawn()
        else:
            await self.program.start()
        self._watching = asyncio.create_task(self._keep(), name=f"keep {self.program.name}")

    async def ready(self, within: timedelta) -> None:
        """Waits through crashes and restarts; raises ``RefusedError`` for a rejected configuration."""
        deadline = asyncio.get_running_loop().time() + within.total_seconds()
        while not await self.program.answers():
            if self._refusal.done():
                self._refusal.result()
            if asyncio.get_running_loop().time() > deadline:
                said = self.program.process.tail() if self.program.process else ""
                raise BackendError(f"{self.program.name} was not ready after {within.total_seconds():g} s:\n{said}")
            await asyncio.sleep(0.03)

    async def stop(self, shutdown: Shutdown | None = None) -> None:
        if self._watching:
            self._watching.cancel()
            await asyncio.wait([self._watching])
            self._watching = None
        await self.program.stop(shutdown)

    def kill(self) -> None:
        """Kill it without a restart; call ``stop`` afterwards."""
        if self._watching:
            self._watching.cancel()
        if self.program.process:
            self.program.process.kill_group(self.program.dies_by)

    async def _keep(self) -> None:
        backoff = RestartBackoff()
        clock = asyncio.get_running_loop().time
        while self.program.process:
            started = clock()
            code = await self.program.process.exited()
            if self.program.is_service and code == BAD_CONFIGURATION:
                return self._give_up()
            delay = backoff.next(timedelta(seconds=clock() - started))
            self._report(f"{self.program.name} exited with code {code}; restarting ({backoff.restarts})")
            await asyncio.sleep(delay.total_seconds())
            with contextlib.suppress(
                OSError, BackendError
            ):  # the old process is seen as ended again, so this is retried
                await self.program.spawn()
                if self._restarted:
                    await self._restarted()
        return None

    def _give_up(self) -> None:
        if self.program.process and not self._refusal.done():
            self._refusal.set_exception(RefusedError(self.program.name, self.program.process.tail()))
