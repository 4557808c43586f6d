"""A program that can be started, awaited until it answers, and stopped."""

import signal
from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from autopost_cli.embedded.ports import free_port
from autopost_cli.embedded.processes import Process, await_ready

Shutdown = tuple[tuple[signal.Signals, timedelta], ...]


def shortened(shutdown: Shutdown, whole: timedelta) -> Shutdown:
    """The same signals, all of them within ``whole``."""
    return tuple((number, min(patience, whole / len(shutdown))) for number, patience in shutdown)


class Program(ABC):
    """Keeps its name, port and log over restarts."""

    is_service = False
    dies_by = signal.SIGKILL
    ready_within = timedelta(seconds=30)
    shutdown: Shutdown = ((signal.SIGTERM, timedelta(seconds=3)),)

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.process: Process | None = None

    async def start(self) -> None:
        try:
            await self.spawn()
            await self.ready()
        except BaseException:
            await self.stop()
            raise

    async def spawn(self) -> Process:
        """Start it without waiting until it answers."""
        self.process = await self._spawn()
        return self.process

    async def ready(self) -> None:
        if self.process:
            await await_ready(self.process, self.answers, self.ready_within)

    async def stop(self, shutdown: Shutdown | None = None) -> None:
        if self.process:
            await self.process.end(*(shutdown or self.shutdown))
            self.process = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @abstractmethod
    async def answers(self) -> bool:
        """Whether a request in its own protocol succeeds."""

    @abstractmethod
    async def _spawn(self) -> Process: ...


class Server(Program):
    """An embedded server; keeps its data folder and port while it is stopped."""

    def __init__(self, name: str, data: Path, port: int | None, log: Path | None) -> None:
        self.data = data.absolute()
        self.port = port or free_port()
        super().__init__(name, log or self.data.with_name(f"{self.data.name}.log"))
