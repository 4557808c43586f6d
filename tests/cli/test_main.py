"""The command itself: quick to explain, clear when something is missing."""

import subprocess
import sys

import pytest
from autopost_cli.__main__ import Commands, main
from click.testing import CliRunner


def test_help_loads_no_subcommand() -> None:
    script = "import sys; from autopost_cli.__main__ import main; main(['--help'], standalone_mode=False); "
    script += "sys.exit(any(name.startswith(('asyncpg', 'nats', 'httpx', 'aiohttp')) for name in sys.modules))"

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert shown.returncode == 0, shown.stderr
    assert all(f"  {name} " in shown.stdout for name in Commands.lazy)


@pytest.mark.parametrize("name", list(Commands.lazy))
def test_every_subcommand_explains_itself(name: str) -> None:
    assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_an_unknown_subcommand_is_refused() -> None:
    assert CliRunner().invoke(main, ["dance"]).exit_code == 2


def test_a_command_of_a_package_that_is_not_there_says_how_to_get_it() -> None:
    script = "import sys; sys.modules['autopost_bench'] = None; from autopost_cli.__main__ import main; main(['bench'])"

    refused = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert refused.returncode == 1
    assert "`autopost bench` is not installed here" in refused.stderr
    assert "`make setup`" in refused.stderr
    assert "Traceback" not in refused.stderr
