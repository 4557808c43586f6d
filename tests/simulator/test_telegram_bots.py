"""Bots made with other people's clients, which poll or have a webhook: they hear a person and answer."""

import sys
from pathlib import Path
from typing import Any

import pytest
from harness.eventually import eventually
from harness.foreign_programs import NPM, bot, npm_packages, telebot_program

pytestmark = pytest.mark.time_limit(480)

TOKEN = "1001:telegram-token"
PERSON = 9
CLIENTS = ["grammy", "telegraf", "node-telegram-bot-api", "telebot", "pyTelegramBotAPI"]
HERE = Path(__file__).parent


def command(config: pytest.Config, name: str, way: str, base: str) -> tuple[list[str], Path]:
    """What to run, and where."""
    if name == "telebot":
        return [str(telebot_program(config)), way, base, TOKEN], HERE
    if name == "pyTelegramBotAPI":
        return [sys.executable, str(HERE / "python" / "pytelegrambotapi_bot.py"), way, base, TOKEN], HERE
    return ["node", str(NPM / "telegram_bot.mjs"), name, way, base, TOKEN], npm_packages(config)


async def person(client: Any, deed: str, **body: Any) -> None:
    answer = await client.control(f"telegram/customers/{PERSON}/{deed}", body)
    assert answer.status == 200, answer.body


async def shown(client: Any, text: str) -> dict[str, Any]:
    """The message with this text, once there is one."""

    async def found() -> dict[str, Any] | None:
        answer = await client.ask("GET", f"/_sim/chats/telegram/{PERSON}/messages")
        messages = answer.body["messages"] if answer.status == 200 else []
        return next((message for message in messages if message["text"] == text), None)

    message: dict[str, Any] = await eventually(found)
    return message


@pytest.mark.parametrize("way", ["poll", "hook"])
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_bot_hears_a_person_and_answers(client, pytestconfig, name, way):
    program, folder = command(pytestconfig, name, way, client.base)
    await client.control("chats", {"platform": "telegram", "id": PERSON, "type": "private", "limits": []})

    async with bot(program, folder):
        await person(client, "start")
        offered = await shown(client, "choose")
        await person(client, "write", text="hello")
        await shown(client, "you said hello")
        await person(client, "press", message_id=offered["id"], button="Yes")
        await shown(client, "chosen: yes")

    (answered,) = (await client.ask("GET", "/_sim/telegram/callbacks")).body["callbacks"]
    assert answered["text"] == "thanks"
