"""The command `autopost` as an operator runs it: its words, its answer, its exit code."""

import asyncio
from typing import Any, NamedTuple

import msgspec
from autopost_cli.__main__ import main
from click.testing import CliRunner


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)


class Autopost:
    """In a thread of this process, which has an event loop of its own; nothing is inherited from the environment."""

    def __init__(self, database_url: str, **env: str) -> None:
        self.env: dict[str, str | None] = {
            "AUTOPOST_DATABASE_URL": database_url,
            "AUTOPOST_OPERATOR": None,
            "AUTOPOST_NATS_URL": None,
            **env,
        }

    async def __call__(self, *words: object, stdin: str = "") -> Ran:
        given = [str(word) for word in words]
        ran = await asyncio.to_thread(CliRunner().invoke, main, given, input=stdin, env=self.env)
        if ran.exception is not None and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        return Ran(ran.exit_code, ran.stdout, ran.stderr)
