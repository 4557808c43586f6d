"""``autopost up``: run the whole system on one machine."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
from autopost_runtime.config.load import ConfigError

from autopost_cli.development import STATUS_TOKEN
from autopost_cli.embedded.processes import BackendError
from autopost_cli.stack.console import Console, write_all
from autopost_cli.stack.stack import ALL, OnLogs, Stack
from autopost_cli.stack.supervise import BAD_CONFIGURATION, RefusedError

STDOUT, STDERR = 1, 2
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Keep the data in this folder between runs."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON line on stdout when ready; all other output goes to stderr."
)
@click.option("--no-simulator", is_flag=True, help="Do not start the simulator; use AUTOPOST_*_API_URL.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Log level of the services."
)
def up(data: Path | None, as_json: bool, no_simulator: bool, log_level: str | None) -> None:
    """Start Postgres, NATS, S3, the simulator and the services; Ctrl-C stops them all.

    To use your own server instead of an embedded one, set AUTOPOST_DATABASE_URL, AUTOPOST_NATS_URL (or `off`),
    AUTOPOST_S3_ENDPOINT, AUTOPOST_TELEGRAM_API_URL or AUTOPOST_MAX_API_URL. Ports are chosen automatically; to fix one,
    set AUTOPOST_INGEST_PORT, …_BOT_PORT, …_MONITOR_PORT, …_SIMULATOR_PORT, …_POSTGRES_PORT, …_NATS_PORT or …_S3_PORT.
    """
    env = {"AUTOPOST_LOG_FORMAT": "json" if as_json else "console", **os.environ}
    if log_level:
        env["AUTOPOST_LOG_LEVEL"] = log_level
    backends = [name for name in ALL if not (no_simulator and name == "simulator")]
    sys.exit(serve(lambda on_logs: Stack(data=data, env=env, backends=backends, on_logs=on_logs), as_json=as_json))


def serve(make_stack: Callable[[OnLogs], Stack], *, as_json: bool) -> int:
    """Run the stack until a signal; returns the exit code."""
    try:
        stack = make_stack(lambda logs: Console(logs, STDERR if as_json else STDOUT))
        asyncio.run(_run(stack, _announce_json if as_json else _announce))
    except (ConfigError, RefusedError) as error:
        _print_error(error)
        return BAD_CONFIGURATION
    except BackendError as error:
        _print_error(error)
        return 1
    return 0


async def _run(stack: Stack, announce: Callable[[Stack], None]) -> None:
    stop_requested = asyncio.Event()
    _handle_signals(stack, stop_requested)
    starting = asyncio.create_task(stack.__aenter__())
    stopping = asyncio.create_task(stop_requested.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()  # stops what was already started
        await asyncio.gather(starting, return_exceptions=True)
        return
    async with contextlib.AsyncExitStack() as ending:
        ending.push_async_exit((await starting).__aexit__)
        announce(stack)
        refused = asyncio.ensure_future(stack.refused())
        await asyncio.wait([stopping, refused], return_when=asyncio.FIRST_COMPLETED)
        stack.report("stopping")
        if refused.done():
            await refused


def _handle_signals(stack: Stack, stop_requested: asyncio.Event) -> None:
    """The first signal stops the stack, the second kills it."""

    def heed() -> None:
        if stop_requested.is_set():
            stack.kill_all()
        stop_requested.set()

    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, heed)


def _announce(stack: Stack) -> None:
    places = {name: place for name, place in stack.describe().items() if isinstance(place, str)}
    for name, place in places.items():
        stack.report(f"{name:<13} {place}")
    if "monitor" in stack.urls:
        stack.report(f"{'status page':<13} {stack.urls['monitor']}/status, token {STATUS_TOKEN} (see db/seed.sql)")
    stack.report(f"ready; data and logs are in {stack.data}; stop with Ctrl-C")


def _announce_json(stack: Stack) -> None:
    stack.report("ready")
    with contextlib.suppress(OSError):  # stdout was closed
        write_all(STDOUT, msgspec.json.encode(stack.describe()) + b"\n")


def _print_error(error: Exception) -> None:
    with contextlib.suppress(OSError):
        write_all(STDERR, f"autopost up: {error}\n".encode())
