"""The bot as a process of its own."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.support.replicas import lift_rate
from harness.databases import Database


@asynccontextmanager
async def running(
    database: Database, nats_url: str, namespace: str, **env: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, list[str]]]:
    """The process, its URL and the lines of its log so far."""
    await lift_rate(database)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autopost_bot"),
        env={
            "PATH": os.environ["PATH"],
            "AUTOPOST_DATABASE_URL": database.url,
            "AUTOPOST_NATS_URL": nats_url,
            "AUTOPOST_NATS_NAMESPACE": namespace,
            "AUTOPOST_STREAM_CLIENTS": "1000",
            **env,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    lines: list[str] = []
    try:
        assert process.stdout is not None
        while not lines or "bot.listening" not in lines[-1]:
            line = (await process.stdout.readline()).decode()
            assert line, lines
            lines.append(line)
        yield process, json.loads(lines[-1])["url"], lines
    finally:
        if process.returncode is None:
            process.kill()
        out, _ = await process.communicate()
        lines += out.decode().splitlines()
