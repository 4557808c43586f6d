"""telebot, a client in Go that Debian packages, used as it is. ``.ci/telebot`` installs it."""

from pathlib import Path

import pytest
from harness.foreign_programs import results, telebot_program
from harness.telegram_calls import CALL_RESULTS, call_chats, call_files

pytestmark = pytest.mark.time_limit(480)

CHANNEL = -1001000000001
TOKEN = "1001:telegram-token"


async def test_every_call_of_telebot_ends_as_it_should(lenient, pytestconfig, tmp_path: Path):
    """Leniently, because it sends ``file_name`` and the like, which no method has."""
    client = lenient
    call_files(tmp_path)
    for chat in call_chats():
        await client.control("chats", chat)

    found = await results(
        [str(telebot_program(pytestconfig)), "calls", client.base, TOKEN, str(CHANNEL), str(tmp_path)], tmp_path
    )

    assert found == CALL_RESULTS
