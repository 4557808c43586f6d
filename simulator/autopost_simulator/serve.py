"""Run the simulator until it is stopped; hanging requests do not delay the stop."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from autopost_simulator.simulator import Simulator

PATIENCE = 0.1
LONGEST_HEAD = 256 * 1024
"""Telegram takes as much in a query; some clients send long texts there."""


@asynccontextmanager
async def listening(simulator: Simulator, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Yields its URL. There is no access log, since Telegram tokens are part of the URL."""
    runner = web.AppRunner(
        simulator.application(),
        access_log=None,
        shutdown_timeout=PATIENCE,
        max_line_size=LONGEST_HEAD,
        max_field_size=LONGEST_HEAD,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
        address = f"[{host}]" if ":" in host else host
        yield f"http://{address}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def run(simulator: Simulator, host: str, port: int, port_file: Path | None) -> None:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(simulator, host, port, port_file))


async def serve(simulator: Simulator, host: str, port: int, port_file: Path | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with listening(simulator, host, port) as url:
        announce(url, port_file)
        await stop.wait()


def announce(url: str, port_file: Path | None) -> None:
    if port_file is not None:
        unfinished = port_file.with_name(f"{port_file.name}.new")
        unfinished.write_text(url.rpartition(":")[2] + "\n")
        unfinished.replace(port_file)
    sys.stdout.write(msgspec.json.encode({"simulator": url}).decode() + "\n")
    sys.stdout.flush()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not available on Windows
        return None
    return uvloop.new_event_loop
