"""One set of backends per run, whatever the number of workers.

The process that was started as ``pytest`` owns them: a thread of it listens on
a unix socket, starts what a worker asks for, once, and ends it all with the run.
"""

import asyncio
import contextlib
import os
import tempfile
import threading
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import msgspec

from harness.backends import Backends, EmbeddedBackends
from harness.buckets import Bucket
from harness.databases import make_migrated, make_seeded

STOP = "stop"


class BackendsUnavailableError(Exception):
    """Carries what the owner of the backends said."""


class Answers:
    """Each question is worked on once; later askers get the same answer, or the same failure."""

    def __init__(self) -> None:
        self._chosen: Backends | None = None
        self._known: dict[str, str | Exception] = {}
        self._work: dict[str, Callable[[], Awaitable[str]]] = {
            "postgres": lambda: self._backends.postgres(),
            "nats": lambda: self._backends.nats(),
            "migrated": self._migrated,
            "seeded": self._seeded,
        }

    async def answer(self, question: str) -> Any:
        if question == "bucket":
            return msgspec.to_builtins(await self._backends.bucket())
        if question not in self._known:
            try:
                self._known[question] = await self._work[question]()
            except Exception as error:
                self._known[question] = error
        known = self._known[question]
        if isinstance(known, Exception):
            raise known
        return known

    async def stop(self) -> None:
        if self._chosen:
            await self._chosen.stop()

    @property
    def _backends(self) -> Backends:
        if self._chosen is None:
            self._chosen = _choose()
        return self._chosen

    async def _migrated(self) -> str:
        return await make_migrated(await self.answer("postgres"))

    async def _seeded(self) -> str:
        return await make_seeded(await self.answer("postgres"), await self.answer("migrated"))


def _choose() -> Backends:
    if os.environ.get("AUTOPOST_TEST_BACKEND", "embedded") == "embedded":
        return EmbeddedBackends()
    from harness.containers import ContainerBackends  # needs packages that nothing else needs

    return ContainerBackends()


class Owner:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ap-")
        self.address = str(Path(self._folder.name) / "owner")
        self._listener = Listener(self.address, "AF_UNIX", backlog=64)
        self._thread = threading.Thread(target=self._serve, name="backends", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with Client(self.address, "AF_UNIX") as line:
            line.send(STOP)
        self._thread.join()
        self._listener.close()
        self._folder.cleanup()

    def _serve(self) -> None:
        """One question at a time: the first worker waits for the start, the others for the first."""
        answers = Answers()
        with asyncio.Runner() as runner:
            while self._serve_one(runner, answers):
                pass
            runner.run(answers.stop())

    def _serve_one(self, runner: asyncio.Runner, answers: Answers) -> bool:
        with self._listener.accept() as line, contextlib.suppress(OSError, EOFError):  # a worker may die while asking
            question = line.recv()
            if question == STOP:
                return False
            line.send(_reply(runner, answers, question))
        return True


def _reply(runner: asyncio.Runner, answers: Answers, question: str) -> tuple[bool, Any]:
    try:
        return True, runner.run(answers.answer(question))
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def ask(address: str, question: str) -> Any:
    with Client(address, "AF_UNIX") as line:
        line.send(question)
        fine, reply = line.recv()
    if not fine:
        raise BackendsUnavailableError(reply)
    return reply


def ask_bucket(address: str) -> Bucket:
    return msgspec.convert(ask(address, "bucket"), Bucket)
