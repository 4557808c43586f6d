"""``autopost up``: the whole system on one machine, until it is told to stop."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
from autopost_runtime.config import ConfigError

from autopost_cli.console import Console, write_all
from autopost_cli.development import STATUS_TOKEN
from autopost_cli.embedded.processes import BackendError
from autopost_cli.stack import ALL, OnLogs, Stack
from autopost_cli.supervise import BAD_CONFIGURATION, RefusedError

STDOUT, STDERR = 1, 2
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Keep the data here between runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON line on stdout when ready; everything else on stderr.")
@click.option("--no-simulator", is_flag=True, help="Leave Telegram and MAX to AUTOPOST_*_API_URL.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Of the services.")
def up(data: Path | None, as_json: bool, no_simulator: bool, log_level: str | None) -> None:
    """Start Postgres, NATS, S3, the simulator and the services; Ctrl-C ends them all.

    AUTOPOST_DATABASE_URL, AUTOPOST_NATS_URL (or `off`), AUTOPOST_S3_ENDPOINT, AUTOPOST_TELEGRAM_API_URL and
    AUTOPOST_MAX_API_URL put a part of your own in the place of an embedded one. Ports are free ones unless
    AUTOPOST_INGEST_PORT, …_BOT_PORT, …_MONITOR_PORT, …_SIMULATOR_PORT, …_POSTGRES_PORT, …_NATS_PORT or …_S3_PORT say.
    """
    env = {"AUTOPOST_LOG_FORMAT": "json" if as_json else "console", **os.environ}
    if log_level:
        env["AUTOPOST_LOG_LEVEL"] = log_level
    backends = [name for name in ALL if not (no_simulator and name == "simulator")]
    sys.exit(serve(lambda on_logs: Stack(data=data, env=env, backends=backends, on_logs=on_logs), as_json=as_json))


def serve(make_stack: Callable[[OnLogs], Stack], *, as_json: bool) -> int:
    """Runs it until a signal comes; the exit code."""
    try:
        stack = make_stack(lambda logs: Console(logs, STDERR if as_json else STDOUT))
        asyncio.run(_run(stack, _announce_json if as_json else _announce))
    except (ConfigError, RefusedError) as error:
        _say(error)
        return BAD_CONFIGURATION
    except BackendError as error:
        _say(error)
        return 1
    return 0


async def _run(stack: Stack, announce: Callable[[Stack], None]) -> None:
    told = asyncio.Event()
    _heed_signals(stack, told)
    starting = asyncio.create_task(stack.__aenter__())
    stopping = asyncio.create_task(told.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()  # and it takes down what it has put up
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


def _heed_signals(stack: Stack, told: asyncio.Event) -> None:
    """Asked twice, it ends everything at once."""

    def heed() -> None:
        if told.is_set():
            stack.kill_all()
        told.set()

    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, heed)


def _announce(stack: Stack) -> None:
    places = {name: place for name, place in stack.describe().items() if isinstance(place, str)}
    for name, place in places.items():
        stack.report(f"{name:<13} {place}")
    if "monitor" in stack.urls:
        stack.report(f"{'status page':<13} {stack.urls['monitor']}/status, token {STATUS_TOKEN} (see db/seed.sql)")
    stack.report(f"ready; data and logs are in {stack.data}; Ctrl-C ends it")


def _announce_json(stack: Stack) -> None:
    stack.report("ready")
    with contextlib.suppress(OSError):  # whoever started us has stopped listening
        write_all(STDOUT, msgspec.json.encode(stack.describe()) + b"\n")


def _say(error: Exception) -> None:
    with contextlib.suppress(OSError):
        write_all(STDERR, f"autopost up: {error}\n".encode())
