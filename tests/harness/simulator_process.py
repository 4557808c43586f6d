"""The simulator as its users start it: a process of its own."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def running(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "autopost_simulator",
        *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process, json.loads(await process.stdout.readline())["simulator"]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
