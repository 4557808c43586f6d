"""grammY, Telegraf and node-telegram-bot-api, used as they are: only the address is ours."""

from pathlib import Path

import pytest
from harness.foreign_programs import NPM, npm_packages, results
from harness.telegram_calls import CALL_RESULTS, call_chats, call_files

pytestmark = pytest.mark.time_limit(480)

CHANNEL = -1001000000001
TOKEN = "1001:telegram-token"
CLIENTS = ["grammy", "telegraf", "node-telegram-bot-api"]


@pytest.mark.parametrize("name", CLIENTS)
async def test_every_call_of_a_telegram_client_ends_as_it_should(client, pytestconfig, tmp_path: Path, name):
    packages = npm_packages(pytestconfig)
    call_files(tmp_path)
    for chat in call_chats():
        await client.control("chats", chat)

    program = ["node", str(NPM / "telegram_calls.mjs"), name, client.base, TOKEN, str(CHANNEL), str(tmp_path)]
    found = await results(program, packages)

    assert list(found) == list(CALL_RESULTS)
    assert found == CALL_RESULTS
