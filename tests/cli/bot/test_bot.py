"""`autopost bot` calls the service as an integration does, and shows what it answers."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from autopost_contracts.ids import WorkspaceId, chat_token
from bot.support.replicas import CHAT, FOREIGN, SECRET, WORKSPACE, Replica, lift_rate, replica
from harness.autopost_command import Autopost
from harness.databases import Database

PLENTY = 60


@pytest.fixture
async def service(seeded_database: Database, nats_url: str, nats_namespace: str) -> AsyncIterator[Replica]:
    await lift_rate(seeded_database)
    async with replica(seeded_database, namespace=nats_namespace, nats_url=nats_url) as running:
        yield running


@asynccontextmanager
async def running(service: Replica, *words: str, workspace: str = WORKSPACE) -> AsyncIterator[Process]:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "bot", *words, "--workspace", workspace),
        env=os.environ | {"AUTOPOST_BOT_URL": service.url, "AUTOPOST_SECRET": SECRET},
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def bot(service: Replica, *words: str, workspace: str = WORKSPACE) -> tuple[int | None, str, str]:
    async with running(service, *words, workspace=workspace) as process, asyncio.timeout(PLENTY):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_an_action_is_started_listed_and_ended(service: Replica) -> None:
    of_it = ("--chat", CHAT, "--id", "a", "--json")

    started = await bot(service, "action", "start", "--type", "summarize", "--text", "Читаю", *of_it)
    listed = await bot(service, "action", "list", "--chat", CHAT, "--json")
    ended = await bot(service, "action", "update", "--status", "done", "--payload", '{"pages": 3}', *of_it)
    nothing = await bot(service, "action", "list", "--chat", CHAT, "--json")

    assert json.loads(started[1])["status"] == "processing"
    assert [action["displayText"] for action in json.loads(listed[1])["actions"]] == ["Читаю"]
    assert json.loads(ended[1])["payload"] == {"pages": 3}
    assert json.loads(nothing[1]) == {"actions": []}


async def test_actions_of_all_chats_are_listed_from_the_database(service: Replica, seeded_database: Database) -> None:
    await service.start("a")
    await service.start("late")
    await service.start("ended")
    await service.update("ended")
    await seeded_database.pool.execute(
        "UPDATE bot_actions SET created_at = now() - interval '3 hours' WHERE action_id = 'late'"
    )
    await seeded_database.pool.fetch("SELECT expire_bot_actions($1, '2 hours', 10)", UUID(WORKSPACE))

    ran = await Autopost(seeded_database.url)("bot", "actions", "--workspace", WORKSPACE, "--json")

    rows = [(row["chat"], row["action_id"], row["status"]) for row in ran.json["actions"]]
    token = chat_token(WorkspaceId(UUID(WORKSPACE)), CHAT)
    assert rows == [(token, "late", "timeout"), (token, "a", "processing")]


async def test_what_the_service_refuses_is_said_in_its_words(service: Replica) -> None:
    unknown = await bot(service, "action", "update", "--chat", CHAT, "--id", "a")
    foreign = await bot(service, "action", "list", "--chat", CHAT, workspace=FOREIGN)
    payload = await bot(service, "action", "update", "--chat", CHAT, "--id", "a", "--payload", "[1]")

    assert unknown[0] == 1
    assert "Действие с actionId 'a' не найдено. Сначала вызовите start." in unknown[2]
    assert (foreign[0], "403" in foreign[2]) == (1, True)
    assert (payload[0], "must be a JSON object" in payload[2]) == (2, True)


async def test_the_stream_of_a_chat_is_followed_from_a_number_on(service: Replica) -> None:
    await service.start("a")

    async with running(service, "watch", CHAT, "--after", "0", "--json") as process, asyncio.timeout(PLENTY):
        assert process.stdout is not None
        first = json.loads(await process.stdout.readline())
        await service.start("b")
        second = json.loads(await process.stdout.readline())

    assert [event["action"]["actionId"] for event in (first, second)] == ["a", "b"]
