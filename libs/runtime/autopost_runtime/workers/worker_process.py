"""Run functions on untrusted input in worker processes, with limits of CPU time and memory per call.

Threads are not enough: much of the standard library holds the GIL. A call is a top-level function with one argument;
argument and result are msgspec types, and no environment or open file is passed. A worker over its limit is killed and
replaced. Workers end with the service, also when it is killed.
"""

import asyncio
import os
import signal
import struct
import sys
from collections.abc import Callable, Hashable
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from typing import Any, Self, TypeVar, get_type_hints

import msgspec

from autopost_runtime.lifecycle.fair_slots import FairSlots, QueueFull
from autopost_runtime.workers.worker_main import Returned, WorkerCall, WorkerFailure

CPU_LIMIT = timedelta(seconds=1)
MEMORY_LIMIT = 1024**3
PATIENCE = 20
"""The wall-clock limit of a call as a multiple of its CPU limit: on a busy machine a worker waits for a core."""

START_LIMIT = timedelta(seconds=10)

_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR")
_KILLED_BY_SYSTEM = (-signal.SIGKILL, -signal.SIGTERM)
_HEAD = struct.Struct(">I")

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_decoder: msgspec.msgpack.Decoder[Returned | WorkerFailure] = msgspec.msgpack.Decoder(Returned | WorkerFailure)
_encode = msgspec.msgpack.encode


class TooComplex(Exception):  # noqa: N818  named for what happened
    """The call exceeded its CPU time or memory because of its input."""


class CallFailed(Exception):  # noqa: N818  named for what happened
    """The function raised; ``code`` is the name of the exception's type."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _WorkerEndedError(Exception):
    def __init__(self, returncode: int | None) -> None:
        super().__init__(returncode)
        self.returncode = returncode


class WorkerProcesses:
    """At most ``processes`` at a time, each started when first needed and kept for the next call.

    Each holder (a workspace) has at most ``per_holder`` of the workers and at most ``waiting`` queued calls; the queues
    are served round-robin.
    """

    def __init__(
        self,
        processes: int = 2,
        *,
        per_holder: int = 1,
        waiting: int = 32,
        cpu: timedelta = CPU_LIMIT,
        memory: int = MEMORY_LIMIT,
    ) -> None:
        self._slots = FairSlots(processes, per_holder=per_holder, waiting=waiting)
        self._cpu = cpu
        self._memory = memory
        self._idle: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._idle:
            await _end(self._idle.pop())

    async def run(self, function: Callable[[Argument], Result], argument: Argument, *, holder: Hashable) -> Result:
        """Raises ``TooComplex``, ``CallFailed`` and ``QueueFull``."""
        call = _encode(WorkerCall(function=_name(function), cpu=self._cpu.total_seconds(), argument=_raw(argument)))
        async with self._slots.slot(holder):
            match await self._ask(call):
                case Returned(result=result):
                    return _result_decoder(function).decode(result)  # type: ignore[no-any-return]
                case WorkerFailure(code=code):
                    raise CallFailed(code)

    async def _ask(self, call: bytes) -> Returned | WorkerFailure:
        """Retry once when the system killed the worker, because the call is not the cause."""
        try:
            return await self._exchange(call)
        except _WorkerEndedError as ended:
            if ended.returncode not in _KILLED_BY_SYSTEM:
                raise TooComplex from None
        try:
            return await self._exchange(call)
        except _WorkerEndedError:
            raise TooComplex from None

    async def _exchange(self, call: bytes) -> Returned | WorkerFailure:
        worker = self._idle_worker() or await _start(self._memory)
        try:
            async with asyncio.timeout((START_LIMIT + self._cpu * PATIENCE).total_seconds()):
                answer = await _exchanged(worker, call)
        except TimeoutError:
            await _end(worker)
            raise QueueFull("the worker got too little CPU time to finish the call") from None
        except (asyncio.IncompleteReadError, OSError):
            await _end(worker)
            raise _WorkerEndedError(worker.returncode) from None
        except BaseException:  # a partial response may be in the pipe
            await asyncio.shield(_end(worker))
            raise
        self._idle.append(worker)
        return _decoder.decode(answer)

    def _idle_worker(self) -> asyncio.subprocess.Process | None:
        """A worker that is still running: the system may have killed an idle one."""
        while self._idle:
            worker = self._idle.pop()
            if worker.returncode is None:
                return worker
        return None


def _name(function: Callable[..., object]) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _raw(argument: object) -> msgspec.Raw:
    return msgspec.Raw(_encode(argument))


@lru_cache(maxsize=64)
def _result_decoder(function: Callable[..., object]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(get_type_hints(function)["return"])


async def _start(memory: int) -> asyncio.subprocess.Process:
    """Our environment is not passed, because it contains secrets."""
    env = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("PYTHON")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "autopost_runtime.workers.worker_main", str(memory)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=env,
    )


async def _exchanged(worker: asyncio.subprocess.Process, call: bytes) -> bytes:
    if worker.stdin is None or worker.stdout is None:
        raise OSError("the process has no pipes")
    worker.stdin.write(_HEAD.pack(len(call)))
    worker.stdin.write(call)
    await worker.stdin.drain()
    (size,) = _HEAD.unpack(await worker.stdout.readexactly(_HEAD.size))
    return await worker.stdout.readexactly(size)


async def _end(worker: asyncio.subprocess.Process) -> None:
    """A worker that has ended is not killed, because ``kill`` would consume its exit status before the loop does."""
    if worker.stdout is None or not worker.stdout.at_eof():
        with suppress(ProcessLookupError):
            worker.kill()
    await worker.wait()
