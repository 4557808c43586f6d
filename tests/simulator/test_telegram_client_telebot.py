"""telebot, a client in Go that Debian packages, used as it is: only the address is ours. ``.ci/telebot`` installs it."""

import shutil
from pathlib import Path

import pytest
from harness.foreign_programs import installed, results, succeed
from harness.telegram_calls import CALL_RESULTS, call_chats, call_files

pytestmark = pytest.mark.time_limit(480)

CHANNEL = -1001000000001
TOKEN = "1001:telegram-token"
SOURCE = Path(__file__).parent / "go" / "telebot.go"
GOPATH = Path("/usr/share/gocode")
"""Where Debian puts Go's libraries."""


@pytest.fixture
def program(pytestconfig: pytest.Config) -> str:
    if shutil.which("go") is None or not (GOPATH / "src/gopkg.in/telebot.v3").is_dir():
        pytest.fail("telebot is missing; .ci/telebot installs it")

    def build(folder: Path) -> None:
        environment = {"GOPATH": str(GOPATH), "GO111MODULE": "off", "GOCACHE": str(folder / "cache"), "CGO_ENABLED": "0"}
        succeed(["go", "build", "-o", str(folder / "telebot"), str(SOURCE)], folder, **environment)
        shutil.rmtree(folder / "cache")

    return str(installed(pytestconfig, "go", SOURCE.read_bytes(), build) / "telebot")


async def test_every_call_of_telebot_ends_as_it_should(client, program, tmp_path: Path):
    call_files(tmp_path)
    for chat in call_chats():
        await client.control("chats", chat)

    found = await results([program, "calls", client.base, TOKEN, str(CHANNEL), str(tmp_path)], tmp_path)

    assert found == CALL_RESULTS
