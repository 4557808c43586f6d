"""The Telegram target, against the simulator: the same adapter, the same refusals as for posts."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from autopost_monitor.alerts.notice_result import NoticeDelivered, NoticeResult, TargetUnreachable
from autopost_monitor.alerts.telegram import TelegramTarget
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient
from autopost_simulator import Simulator, listening
from harness.http_client import http_client
from monitor.support.alert_targets import configured, notice

TOKEN = "1000009:alert-tests-token-0123456789abcdefgh"
CHAT = "-1007"


class Chat:
    def __init__(self, base: str, http: httpx.AsyncClient, client: HttpClient) -> None:
        self.base, self.http, self.client = base, http, client

    async def send(self, kind: str = "opened", chat: str = CHAT) -> NoticeResult:
        config = configured(telegram_api_url=self.base, alert_telegram_token=Secret(TOKEN), alert_telegram_chat=chat)
        target = TelegramTarget.of(config, self.client)
        assert target is not None
        return await target.send(notice(kind))

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
        http_client(timeout=10) as http,
        HttpClient(limit=2) as client,
    ):
        yield Chat(base, http, client)


async def test_an_alert_arrives_as_one_message_without_markup(chat: Chat) -> None:
    assert await chat.send() == NoticeDelivered()

    [text] = await chat.texts()
    assert text.startswith("autopost: demo: 3 dead deliveries")
    assert "autopost why" in text


async def test_a_flood_limit_is_waited_out(chat: Chat) -> None:
    await chat.control("faults", {"name": "flood", "effect": {"status": 429, "retry_after": 7}, "times": 1})

    ended = await chat.send()

    assert isinstance(ended, TargetUnreachable)
    assert ended.wait == timedelta(seconds=7)
    assert await chat.send() == NoticeDelivered()


async def test_a_chat_that_shut_us_out_and_a_gateway_error_are_a_target_that_is_away(chat: Chat) -> None:
    await chat.control("faults", {"name": "gateway", "effect": {"html": 502}, "times": 1})
    gone = await chat.send()
    await chat.control("chats", {"platform": "telegram", "id": int(CHAT), "type": "channel", "state": "kicked"})
    shut = await chat.send()

    assert isinstance(gone, TargetUnreachable)
    assert isinstance(shut, TargetUnreachable)
    assert TOKEN not in repr([gone, shut])


async def test_a_group_that_moved_is_followed(chat: Chat) -> None:
    await chat.control("chats", {"platform": "telegram", "id": -100777, "type": "supergroup", "title": "New"})
    await chat.control(
        "chats", {"platform": "telegram", "id": -77, "type": "group", "title": "Old", "migrated_to": -100777}
    )

    assert await chat.send(chat="-77") == NoticeDelivered()
    assert len(await chat.texts()) == 1
