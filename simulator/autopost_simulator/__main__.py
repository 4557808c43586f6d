"""``python -m autopost_simulator``; the same command is ``autopost simulator``."""

from pathlib import Path

import click
import msgspec

from autopost_simulator.registration import StartState
from autopost_simulator.serve import run
from autopost_simulator.simulator import Simulator


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=0,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 for any free port.",
)
@click.option(
    "--port-file", type=click.Path(path_type=Path, dir_okay=False), help="Write the port to this file once listening."
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON file with initial tokens and chats.",
)
@click.option(
    "--log", type=click.Path(path_type=Path, dir_okay=False), help="Append every provider request to this file."
)
@click.option("--open", "open_to_all", is_flag=True, help="Create unknown tokens and chats when they are first used.")
@click.option("--lenient", is_flag=True, help="Ignore unknown and mistyped fields, as the platforms do.")
def simulator(
    host: str, port: int, port_file: Path | None, state: Path | None, log: Path | None, open_to_all: bool, lenient: bool
) -> None:
    """Simulate the Telegram and MAX APIs."""
    start = _read_state(state) if state else StartState()
    try:
        parts = Simulator(start=start, log=log, open_to_all=open_to_all, strict=not lenient)
        run(parts, host, port, port_file)
    except msgspec.ValidationError as error:
        raise click.BadParameter(str(error), param_hint="--state") from None
    except OSError as error:
        raise click.ClickException(str(error)) from None


def _read_state(path: Path) -> StartState:
    try:
        return msgspec.json.decode(path.read_bytes(), type=StartState)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--state") from None


if __name__ == "__main__":
    simulator()
