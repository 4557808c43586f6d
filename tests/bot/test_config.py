"""What the configuration of the bot needs and refuses."""

import asyncio
import os
import sys

import pytest
from autopost_bot.config import BotConfig
from autopost_runtime.config.load import ConfigError

URL = "postgresql://localhost/nowhere"
SHOW_LIMIT = """
import resource
from autopost_bot.config import allow_open_files
allow_open_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


async def with_open_files(limit: str, *words: str) -> tuple[int | None, str]:
    """Exit code and output of Python, started by a shell with this limit."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", f'ulimit {limit} && exec "$@"', "bash", sys.executable, *words),
        env={"PATH": os.environ["PATH"], "AUTOPOST_DATABASE_URL": URL, "AUTOPOST_STREAM_CLIENTS": "600"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_more_streams_than_open_files_are_refused_at_start() -> None:
    code, output = await with_open_files("-n 1000", "-m", "autopost_bot")

    assert code != 0
    assert "AUTOPOST_STREAM_CLIENTS: 600 needs 1600 open files, but the limit of this process is 1000" in output


async def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    code, output = await with_open_files("-Sn 256 && ulimit -Hn 900", "-c", SHOW_LIMIT)

    assert (code, output.strip()) == (0, "(900, 900)")


def test_ten_thousand_streams_are_allowed_by_default() -> None:
    assert BotConfig(database_url=URL).stream_clients == 10_000


@pytest.mark.parametrize("origins", ["shop.example.com", "https://shop.example.com/", "*", "https://a.example, b"])
def test_what_is_no_origin_is_refused_by_the_name_of_its_variable(origins: str) -> None:
    with pytest.raises(ConfigError, match="AUTOPOST_CORS_ORIGINS"):
        BotConfig(database_url=URL, cors_origins=origins)
