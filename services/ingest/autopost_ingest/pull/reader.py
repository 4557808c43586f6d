"""Have documents read by processes of their own: one that takes too long or too much is killed, nobody waits for it."""

import asyncio
import os
import struct
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Self

import msgspec

from autopost_ingest.pull.reading import Answer, Question, Refused

READING_LIMIT = timedelta(seconds=15)
_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR")

_decoder: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_encode = msgspec.msgpack.encode


class Reader:
    """At most ``processes`` at a time; each is started when it is first needed and kept for the next question."""

    def __init__(self, processes: int = 2, limit: timedelta = READING_LIMIT) -> None:
        self._free = asyncio.Semaphore(processes)
        self._limit = limit
        self._idle: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._idle:
            await _end(self._idle.pop())

    async def read(self, question: Question) -> Answer:
        async with self._free:
            process = self._idle.pop() if self._idle else await _start()
            try:
                async with asyncio.timeout(self._limit.total_seconds()):
                    told = await _ask(process, question)
            except TimeoutError:
                await _end(process)
                return Refused(reason=f"reading it takes longer than {self._limit.total_seconds():g} s")
            except (asyncio.IncompleteReadError, OSError):
                await _end(process)
                return Refused(reason="reading it takes more memory than there is for it")
            except BaseException:  # there may be half an answer in the pipe
                await asyncio.shield(_end(process))
                raise
            self._idle.append(process)
            return told


async def _start() -> asyncio.subprocess.Process:
    """Without our environment: there are secrets in it."""
    env = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("PYTHON")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "autopost_ingest.pull.reader_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=env,
    )


async def _ask(process: asyncio.subprocess.Process, question: Question) -> Answer:
    if process.stdin is None or process.stdout is None:
        raise OSError("the process has no pipes")
    asked = _encode(question)
    process.stdin.write(struct.pack(">I", len(asked)) + asked)
    await process.stdin.drain()
    (size,) = struct.unpack(">I", await process.stdout.readexactly(4))
    return _decoder.decode(await process.stdout.readexactly(size))


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
