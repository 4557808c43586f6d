"""Whatever one workspace stores and asks for, the loop of the bot is never held longer than 50 ms, nor are others."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
from autopost_bot.__main__ import work
from autopost_bot.config import BotConfig
from bot.support.hostile_requests import REQUESTS, Hostile
from bot.support.replicas import BEARER, CHAT, FOREIGN, WORKSPACE, lift_rate
from harness.databases import Database
from harness.http_client import http_client
from harness.watched_service import WatchedService

BUDGET = timedelta(milliseconds=50)
PAUSE = timedelta(milliseconds=20)
OTHER_SECRET = "api-secret-of-another-workspace"
STORED = """
WITH changed AS (
    SELECT n, advance_chat($1, $2) AS seq FROM generate_series(1, 400) AS n
), action AS (
    INSERT INTO bot_actions (workspace_id, chat_id, action_id, action_type, payload, seq)
    SELECT $1, $2, 'stored ' || n, 'summarize', jsonb_build_object('a', repeat(E'\\n', 8000)), seq
    FROM changed
    WHERE n % 2 = 0
)
INSERT INTO bot_inbox (workspace_id, provider, chat_id, provider_message_id, update, seq)
SELECT $1, 'max', $2, n, jsonb_build_object('message', jsonb_build_object('body', jsonb_build_object(
           'text', repeat(chr(129418), 60000)))), seq
FROM changed
WHERE n % 2 = 1
"""
"""As much as one chat may have, each part as large as allowed or larger."""


class Stage:
    def __init__(self, bot: WatchedService, http: httpx.AsyncClient) -> None:
        self.bot, self._http = bot, http

    async def send(self, hostile: Hostile) -> int:
        """A stream is read until it has nothing more to tell."""
        url = self.bot.url + hostile.path
        if hostile.make is not None:
            return (await self._http.post(url, content=hostile.make(), headers=BEARER)).status_code
        headers = {} if "ticket=" in hostile.path else BEARER
        async with self._http.stream("GET", url, headers=headers) as response:
            if "/events" not in hostile.path:
                await response.aread()
            else:
                await self._read_stream(response)
        return response.status_code

    async def _read_stream(self, response: httpx.Response) -> None:
        pieces = response.aiter_bytes()
        try:
            while True:
                await asyncio.wait_for(anext(pieces), 0.2)
        except (TimeoutError, StopAsyncIteration):
            return

    async def call_of_another(self) -> int:
        fields = {"workspaceId": FOREIGN, "chatId": CHAT, "actionId": "a", "actionType": "summarize"}
        headers = {"Authorization": f"Bearer {OTHER_SECRET}"}
        return (
            await self._http.post(f"{self.bot.url}/api/chat/actions/start", json=fields, headers=headers)
        ).status_code


@pytest.fixture
async def stage(seeded_database: Database) -> AsyncIterator[Stage]:
    await seeded_database.pool.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash)"
        " VALUES ($1, 'bot_api', encode(sha256($2::bytea), 'hex'))",
        *(FOREIGN, OTHER_SECRET.encode()),
    )
    await lift_rate(seeded_database)
    await seeded_database.pool.execute(STORED, WORKSPACE, CHAT)
    bot = WatchedService("bot", work, BotConfig(database_url=seeded_database.url, nats_url=None, stream_clients=100))
    async with bot.running(), http_client(timeout=60) as http:
        yield Stage(bot, http)


async def test_no_request_holds_the_loop_and_another_workspace_is_served_meanwhile(stage: Stage) -> None:
    assert await stage.call_of_another() == 201
    held: dict[str, timedelta] = {}
    answers: dict[str, int] = {}
    of_another: list[int] = []
    for name, hostile in REQUESTS.items():
        stage.bot.probe.longest()

        sent = asyncio.create_task(stage.send(hostile))
        of_another.append(await stage.call_of_another())
        while not (await asyncio.wait({sent}, timeout=PAUSE.total_seconds()))[0]:
            of_another.append(await stage.call_of_another())

        held[name], answers[name] = stage.bot.probe.longest(), sent.result()

    assert {name: longest for name, longest in held.items() if longest > BUDGET} == {}
    assert {name: status for name, status in answers.items() if status >= 500} == {}
    assert set(of_another) == {200}
