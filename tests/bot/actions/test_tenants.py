"""One workspace, one chat or one wakeup never keeps the others of the bot waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from autopost_bot.gateway import WAITING, Gateway
from autopost_contracts.ids import EndpointId, WorkspaceId, chat_token
from autopost_runtime.http.endpoint_cache import Endpoint
from autopost_runtime.http.quotas import AtCapacity
from bot.conftest import StartReplica
from bot.support.listener import listening
from bot.support.replicas import BEARER, CHAT, FOREIGN, WORKSPACE, Replica, lift_rate
from harness.databases import Database
from harness.eventually import eventually

OTHER_SECRET = "api-secret-of-another-workspace"
OTHER = {"Authorization": f"Bearer {OTHER_SECRET}"}
POOL = 10


@pytest.fixture(autouse=True)
async def other_workspace(seeded_database: Database) -> None:
    await seeded_database.pool.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash)"
        " VALUES ($1, 'bot_api', encode(sha256($2::bytea), 'hex'))",
        *(FOREIGN, OTHER_SECRET.encode()),
    )
    await lift_rate(seeded_database)


@asynccontextmanager
async def held_chat(database: Database) -> AsyncIterator[None]:
    """Somebody holds the row of the chat: every change in it waits."""
    connection = await database.connect()
    async with connection.transaction():
        await connection.execute("SELECT advance_chat($1, $2)", WORKSPACE, CHAT)
        yield


async def waiting(database: Database) -> int:
    return int(await database.pool.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))


async def call_of_another(bot: Replica) -> int:
    fields = {"workspaceId": FOREIGN, "chatId": CHAT, "actionId": uuid4().hex, "actionType": "summarize"}
    return (await bot.http.post(f"{bot.url}/api/chat/actions/start", json=fields, headers=OTHER)).status_code


async def test_calls_that_wait_in_one_workspace_leave_connections_for_another(
    bot: Replica, seeded_database: Database
) -> None:
    async with held_chat(seeded_database):
        calls = [asyncio.create_task(bot.start(f"a{n}")) for n in range(3 * POOL)]
        await eventually(lambda: _one_waits(seeded_database))  # the others share the next call

        async with asyncio.timeout(5):
            of_another = [await call_of_another(bot) for _ in range(5)]
    answers = [answer.status_code for answer in await asyncio.gather(*calls)]

    assert (of_another, set(answers)) == ([201] * 5, {201})


async def _one_waits(database: Database) -> bool:
    return await waiting(database) == 1


class Silent:
    """A database that never answers."""

    async def fetchval(self, *_: object) -> None:
        await asyncio.Event().wait()

    fetch = fetchval


async def test_more_calls_than_may_wait_are_told_to_come_back(bot: Replica) -> None:
    gateway = Gateway(Silent(), 4)  # type: ignore[arg-type]
    workspace = WorkspaceId(UUID(WORKSPACE))
    calls = [asyncio.create_task(gateway.chat_changes(workspace, CHAT, 0, 1)) for _ in range(2 + WAITING)]
    await asyncio.sleep(0)
    bot.hub._gateway = gateway

    with pytest.raises(AtCapacity):
        await gateway.chat_changes(workspace, CHAT, 0, 1)
    stream = await bot.http.get(f"{bot.events()}?after=0", headers=BEARER)
    for call in calls:
        call.cancel()

    assert (stream.status_code, stream.text) == (200, "retry: 15000\n\n"), "a browser gives up on any other status"


async def test_more_changes_than_may_wait_for_a_batch_are_told_to_come_back() -> None:
    endpoint = Endpoint(
        workspace_id=WorkspaceId(UUID(WORKSPACE)),
        endpoint_id=EndpointId(uuid4()),
        workspace_status="active",
        max_payload_bytes=1,
    )
    gateway = Gateway(Silent(), 4)  # type: ignore[arg-type]
    calls = [asyncio.create_task(gateway.start_action(endpoint, {"chat_id": CHAT})) for _ in range(WAITING)]
    await asyncio.sleep(0)

    with pytest.raises(AtCapacity):
        await gateway.start_action(endpoint, {"chat_id": CHAT})
    for call in calls:
        call.cancel()


async def test_the_streams_of_one_workspace_leave_room_for_another(start_replica: StartReplica) -> None:
    bot = await start_replica(stream_clients=8)
    async with _streams(bot, 6):
        async with listening(bot.events(), headers=BEARER, connected=False) as refused:
            await eventually(lambda: refused.over)
        async with listening(bot.events(), headers=OTHER) as one, listening(bot.events(), headers=OTHER) as two:
            comments = [one.comments, two.comments]

    assert (refused.retry, refused.comments) == (15_000, [])
    assert comments == [["connected"]] * 2


@asynccontextmanager
async def _streams(bot: Replica, count: int) -> AsyncIterator[None]:
    async with AsyncExitStack() as opened:
        for _ in range(count):
            await opened.enter_async_context(listening(bot.events(), headers=BEARER))
        yield


async def test_a_chat_that_cannot_be_told_keeps_no_other_from_being_told(bot: Replica) -> None:
    failing: list[Any] = []
    deliver = bot.hub._deliver

    def fails(chat: Any, changes: Any) -> None:
        if chat.chat_id == CHAT and len(failing) < 2:
            failing.append(changes)
            raise KeyError("a mistake of ours")
        deliver(chat, changes)

    bot.hub._deliver = fails  # type: ignore[method-assign]
    async with (
        listening(bot.events(), headers=BEARER) as client,
        listening(bot.events(), headers=OTHER) as other,
    ):
        await bot.start()
        await call_of_another(bot)
        await other.heard(1)
        await client.heard(1)

    assert (len(failing), client.ids, other.ids) == (2, [1], [1])


async def test_a_malformed_wakeup_keeps_no_other_from_being_heard(bot: Replica) -> None:
    workspace, client = WorkspaceId(UUID(WORKSPACE)), bot.bus._connection.client
    subject = bot.bus.topology.chat(workspace, chat_token(workspace, CHAT))
    async with listening(bot.events(), headers=BEARER) as heard:
        await client.publish(bot.bus.topology.chats.replace("*.*", "no.uuid"), b"1")
        for data in (b"many", b"9" * 5000, b"9" * 4000, b"-1", b"\xff"):
            await client.publish(subject, data)
        await bot.start()
        await heard.heard(1)

    assert heard.ids == [1]
