"""Stacks of dummy services; run as a program, one that serves like ``autopost up --json`` does."""

import sys
from pathlib import Path
from typing import Any

from autopost_cli.embedded.postgres import FAST
from autopost_cli.stack.services import ServiceSpec
from autopost_cli.stack.stack import Stack
from autopost_cli.stack.up import serve

COMMAND = (sys.executable, "-E", "-S", str(Path(__file__).with_name("dummy_service.py")))
DUMMIES = (ServiceSpec("ingest", COMMAND, public=True), ServiceSpec("dispatcher", COMMAND, public=False))


async def nothing(_: str) -> None:
    """In place of the migrations, which are not what is tested here."""


def dummy_stack(*backends: str, **options: Any) -> Stack:
    given = {"services": DUMMIES, "env": {}, "prepare": nothing, "postgres_settings": FAST, **options}
    return Stack(backends=backends, **given)


def main() -> None:
    data, words, *backends = sys.argv[1:]
    env = {"DUMMY": words}
    sys.exit(serve(lambda on_logs: dummy_stack(*backends, data=Path(data), env=env, on_logs=on_logs), as_json=True))


if __name__ == "__main__":
    main()
