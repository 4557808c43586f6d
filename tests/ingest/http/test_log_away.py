"""Real services whose log cannot be written: every request is answered, and a stop is a stop."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from autopost_cli.development import PUSH_SECRET
from autopost_cli.embedded.ports import free_port
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client

REQUESTS = 300


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def closed_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def stuck_pipe() -> int:
    """Somebody holds the other end and never reads; what fits into it is soon full."""
    _, writer = os.pipe()
    return writer


def slow_pipe() -> int:
    """Its reader takes a page each half second, until the pipe is closed."""
    reader, writer = os.pipe()

    def slowly() -> None:
        while os.read(reader, 4096):
            time.sleep(0.5)
        os.close(reader)

    threading.Thread(target=slowly, daemon=True).start()
    return writer


@asynccontextmanager
async def ingest(database: Database, stdout: int | None) -> AsyncIterator[tuple[str, str, asyncio.subprocess.Process]]:
    health, http = free_port(), free_port()
    env = {
        "PATH": os.defpath,
        "AUTOPOST_DATABASE_URL": database.url,
        "AUTOPOST_HEALTH_PORT": str(health),
        "AUTOPOST_HTTP_PORT": str(http),
        "AUTOPOST_LOG_LEVEL": "debug",
    }
    command = [sys.executable, "-m", "autopost_ingest"]
    if stdout is None:
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=stdout, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{health}", f"http://127.0.0.1:{http}", process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("output", [full_disk, closed_pipe, stuck_pipe, slow_pipe, None])
async def test_every_request_is_answered_and_the_lost_lines_are_counted(
    seeded_database: Database, output: Callable[[], int] | None
) -> None:
    stdout = output() if output else None

    async with ingest(seeded_database, stdout) as (health, url, process), http_client(timeout=30) as http:

        async def is_ready() -> bool:
            try:
                return (await http.get(f"{health}/readyz")).status_code == 200
            except httpx.TransportError:
                return False

        await eventually(is_ready, within=timedelta(minutes=1))
        answers = [
            (await http.post(f"{url}/v1/posts", headers=bearer(number), json={"text": f"post {number}"})).status_code
            for number in range(REQUESTS)
        ]
        metrics = (await http.get(f"{health}/metrics")).text
        process.terminate()

        assert set(answers) <= {202, 401, 429}
        assert answers[0] == 202
        assert await asyncio.wait_for(process.wait(), 30) == 0
    if output not in (stuck_pipe, slow_pipe):  # their lines wait in memory
        assert "autopost_log_lines_lost_total{" in metrics
    if stdout is not None:
        os.close(stdout)


def bearer(number: int) -> dict[str, str]:
    """Now and then a wrong one, which is told."""
    return {"Authorization": f"Bearer {'wrong' if number % 3 else PUSH_SECRET}"}


def test_the_devices_are_what_they_seem() -> None:
    with pytest.raises(OSError, match="No space left"):
        os.write(full_disk(), b"x")
    assert Path("/dev/full").exists()
