"""The Telegram target, against the simulator: the same adapter, the same refusals as for posts."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from autopost_monitor.alert_ending import Delivered, Ending, Unreachable
from autopost_monitor.alert_telegram import TelegramTarget
from autopost_runtime.config import Secret
from autopost_runtime.http import HttpClient
from autopost_simulator import Simulator, listening

from monitor.alert_stage import configured, notice

TOKEN = "1000009:alert-tests-token-0123456789abcdefgh"
CHAT = "-1007"


class Chat:
    def __init__(self, base: str, http: httpx.AsyncClient, client: HttpClient) -> None:
        self.base, self.http, self.client = base, http, client

    async def tell(self, kind: str = "opened", chat: str = CHAT) -> Ending:
        config = configured(telegram_api_url=self.base, alert_telegram_token=Secret(TOKEN), alert_telegram_chat=chat)
        target = TelegramTarget.of(config, self.client)
        assert target is not None
        return await target.tell(notice(kind))

    async def control(self, path: str, body: Any) -> None:
        (await self.http.post(f"{self.base}/_sim/{path}", json=body)).raise_for_status()

    async def texts(self) -> list[str]:
        lines = (await self.http.get(f"{self.base}/_sim/log")).text.splitlines()
        entries = [json.loads(line) for line in lines]
        return [entry["text"] for entry in entries if entry["message_ids"]]


@pytest.fixture
async def chat() -> AsyncIterator[Chat]:
    async with (
        listening(Simulator(open_to_all=True)) as base,
        httpx.AsyncClient(timeout=10) as http,
        HttpClient(limit=2) as client,
    ):
        yield Chat(base, http, client)


async def test_an_alert_arrives_as_one_message_without_markup(chat: Chat) -> None:
    assert await chat.tell() == Delivered()

    [text] = await chat.texts()
    assert text.startswith("autopost: demo: 3 dead deliveries")
    assert "autopost why" in text


async def test_a_flood_limit_is_waited_out(chat: Chat) -> None:
    await chat.control("faults", {"name": "flood", "effect": {"status": 429, "retry_after": 7}, "times": 1})

    ended = await chat.tell()

    assert isinstance(ended, Unreachable)
    assert ended.wait == timedelta(seconds=7)
    assert await chat.tell() == Delivered()


async def test_a_chat_that_shut_us_out_and_a_gateway_error_are_a_target_that_is_away(chat: Chat) -> None:
    await chat.control("faults", {"name": "gateway", "effect": {"html": 502}, "times": 1})
    gone = await chat.tell()
    await chat.control("chats", {"platform": "telegram", "id": int(CHAT), "type": "channel", "state": "kicked"})
    shut = await chat.tell()

    assert isinstance(gone, Unreachable)
    assert isinstance(shut, Unreachable)
    assert TOKEN not in repr([gone, shut])


async def test_a_group_that_moved_is_followed(chat: Chat) -> None:
    await chat.control("chats", {"platform": "telegram", "id": -100777, "type": "supergroup", "title": "New"})
    await chat.control(
        "chats", {"platform": "telegram", "id": -77, "type": "group", "title": "Old", "migrated_to": -100777}
    )

    assert await chat.tell(chat="-77") == Delivered()
    assert len(await chat.texts()) == 1
