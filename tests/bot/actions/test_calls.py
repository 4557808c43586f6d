"""The calls of the action API: who may, what is answered, what is written."""

import asyncio
import json
from collections import Counter
from urllib.parse import quote

import jsonschema
import pytest
from autopost_bot.actions.openapi import document
from autopost_contracts.bot_action_types import json_schema
from bot.conftest import StartReplica
from bot.support.listener import listening
from bot.support.replicas import BEARER, CHAT, FOREIGN, SECRET, WORKSPACE, Replica
from harness.databases import Database


async def rows(database: Database, table: str) -> int:
    return int(await database.pool.fetchval(f"SELECT count(*) FROM {table}"))


@pytest.mark.parametrize("workspace", [FOREIGN, "garbage", WORKSPACE.replace("5f", "5e")])
async def test_another_workspace_in_the_body_is_forbidden_and_writes_nothing(
    bot: Replica, seeded_database: Database, workspace: str
) -> None:
    answers = [await bot.start(workspaceId=workspace), await bot.update(workspaceId=workspace)]
    listed = await bot.list(workspaceId=workspace)

    assert {answer.status_code for answer in (*answers, listed)} == {403}
    assert answers[0].json()["field"] == "workspaceId"
    assert (await rows(seeded_database, "bot_actions"), await rows(seeded_database, "bot_chats")) == (0, 0)


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer shop-push-secret-for-development"}],
    ids=["none", "unknown", "of another kind"],
)
async def test_only_the_secret_of_an_endpoint_of_this_kind_is_known(bot: Replica, headers: dict[str, str]) -> None:
    for call in ("start", "update"):
        answer = await bot.http.post(f"{bot.url}/api/chat/actions/{call}", json={}, headers=headers)
        assert answer.status_code == 401
    for path in ("/api/chat/actions?chatId=7", "/api/chats/7/messages", "/api/chats/7/events"):
        assert (await bot.http.get(bot.url + path, headers=headers)).status_code == 401
    assert (await bot.http.post(f"{bot.url}/api/chats/7/tickets", headers=headers)).status_code == 401


async def test_the_secret_may_come_as_x_webhook_secret(bot: Replica) -> None:
    asked = {"workspaceId": WORKSPACE, "chatId": CHAT}
    answer = await bot.http.get(f"{bot.url}/api/chat/actions", params=asked, headers={"X-Webhook-Secret": SECRET})

    assert (answer.status_code, answer.json(), answer.headers["X-Chat-Cursor"]) == (200, [], "0")


async def test_a_paused_workspace_starts_nothing_and_ends_and_reads_what_runs(
    bot: Replica, seeded_database: Database
) -> None:
    await bot.start()
    await seeded_database.pool.execute("UPDATE workspaces SET status = 'paused'")

    started, ended = await bot.start("b"), await bot.update()

    assert (started.status_code, started.headers["Retry-After"]) == (503, "60")
    assert (ended.status_code, ended.json()["status"]) == (200, "done")
    assert (await bot.list()).status_code == 200


async def test_a_disabled_workspace_is_forbidden_and_its_stream_is_over_for_good(
    bot: Replica, seeded_database: Database
) -> None:
    await seeded_database.pool.execute("UPDATE workspaces SET status = 'disabled'")

    assert {(await bot.start()).status_code, (await bot.update()).status_code, (await bot.list()).status_code} == {403}
    assert (await bot.http.get(bot.events(), headers=BEARER)).status_code == 204


async def test_over_the_rate_of_the_endpoint_a_call_is_told_to_wait(bot: Replica, seeded_database: Database) -> None:
    await seeded_database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = 0.01")
    first, second = await bot.start(), await bot.start("b")

    assert (first.status_code, second.status_code) == (201, 429)
    assert int(second.headers["Retry-After"]) > 0


async def test_a_body_over_64_kib_or_of_another_type_is_refused(bot: Replica) -> None:
    url = f"{bot.url}/api/chat/actions/start"

    large = await bot.http.post(url, content=b"{" + b" " * 65_536 + b"}", headers=BEARER)
    form = await bot.http.post(url, data={"a": "b"}, headers=BEARER)

    assert (large.status_code, form.status_code) == (413, 415)


async def test_the_list_has_what_is_under_way_newest_first_and_its_cursor(bot: Replica) -> None:
    for action in ("a", "b", "c"):
        await bot.start(action)
    await bot.update("b")
    await bot.start("a")

    answer = await bot.list()

    assert [action["actionId"] for action in answer.json()] == ["a", "c"]
    assert answer.headers["X-Chat-Cursor"] == "4"


async def test_messages_are_asked_for_after_or_before_a_number_not_both(bot: Replica) -> None:
    url = f"{bot.url}/api/chats/{CHAT}/messages"
    answers = [
        await bot.http.get(url, params=query, headers=BEARER)
        for query in (
            {"after": 0},
            {"before": 9, "limit": 1},
            {"after": 0, "before": 9},
            {"limit": 201},
            {"after": "x"},
        )
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 422, 422, 422]
    assert [answer.json()["field"] for answer in answers[2:]] == ["before", "limit", "after"]


async def test_types_schema_and_typescript_are_served(bot: Replica) -> None:
    types = (await bot.http.get(f"{bot.url}/api/chat/action-types")).json()

    assert types["actionTypes"][0] == {"actionType": "transcribe_audio", "defaultText": "Готовим стенограмму…"}
    assert types["fallbackText"] == "Выполняем действие…"
    assert (await bot.http.get(f"{bot.url}/api/chat/bot-actions.schema.json")).json() == json_schema()
    assert "export interface BotAction" in (await bot.http.get(f"{bot.url}/api/chat/bot-actions.ts")).text


async def test_of_fifty_ends_at_once_on_two_replicas_one_wins_and_all_get_the_same_answer(
    start_replica: StartReplica,
) -> None:
    replicas = [await start_replica(), await start_replica()]
    await replicas[0].start()
    async with listening(replicas[0].events(), headers=BEARER, after=1) as client:
        answers = await asyncio.gather(
            *(replicas[n % 2].update(status="done" if n % 3 else "error", payload={"by": n}) for n in range(50))
        )
        await client.heard(1)

    assert Counter(answer.status_code for answer in answers) == {200: 50}
    assert len({answer.json()["status"] for answer in answers}) == 1


async def test_of_fifty_equal_ends_at_once_there_is_one_event_and_fifty_equal_answers(
    start_replica: StartReplica,
) -> None:
    replicas = [await start_replica(), await start_replica()]
    await replicas[0].start()
    async with listening(replicas[0].events(), headers=BEARER) as client:
        answers = await asyncio.gather(
            *(replicas[n % 2].update(status="done" if n % 2 else "error") for n in range(50))
        )
        await replicas[0].start("last")
        await client.heard(2)

    assert len({answer.text for answer in answers}) == 1
    assert client.ids == [2, 3]


async def test_calls_at_once_share_transactions_and_one_that_fails_leaves_the_others_alone(
    bot: Replica, seeded_database: Database
) -> None:
    await seeded_database.pool.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON bot_actions DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW WHEN (new.action_id = 'a3') EXECUTE FUNCTION refuse()"
    )

    answers = await asyncio.gather(*(bot.start(f"a{n}") for n in range(10)))

    assert [answer.status_code for answer in answers] == [201] * 3 + [500] + [201] * 6
    await seeded_database.pool.execute("DROP TRIGGER refuse ON bot_actions")
    await asyncio.gather(*(bot.start(f"b{n}") for n in range(40)))
    query = "SELECT count(DISTINCT xmin::text) FROM bot_actions WHERE action_id LIKE 'b%'"
    assert await seeded_database.pool.fetchval(query) < 30


async def test_a_hundred_starts_are_one_event(bot: Replica) -> None:
    async with listening(bot.events(), headers=BEARER) as client:
        answers = [await bot.start() for _ in range(100)]
        await client.heard(1)
        await bot.update()
        await client.heard(2)

    assert client.actions == [("a", "processing"), ("a", "done")]
    assert answers[-1].json()["updatedAt"] > answers[0].json()["updatedAt"]


async def test_an_action_is_no_message(bot: Replica, seeded_database: Database) -> None:
    async with listening(bot.events(), headers=BEARER) as client:
        await bot.start()
        await client.heard(1)
        await bot.update()
        await client.heard(2)

    assert set(client.kinds) == {"bot_action"}
    assert [await rows(seeded_database, table) for table in ("bot_inbox", "bot_outbox", "bot_logs")] == [0, 0, 0]
    assert (await bot.http.get(f"{bot.url}/api/chats/{CHAT}/messages", headers=BEARER)).json() == []


async def test_every_event_and_answer_matches_the_published_schemas(bot: Replica) -> None:
    async with listening(bot.events(), headers=BEARER) as client:
        started = await bot.start(payload={"a": [1, None]})
        await client.heard(1)

    jsonschema.validate(client.events[0][1], json_schema())
    components = document()["components"]
    shape = {"$ref": "#/components/schemas/BotAction", "components": components}
    jsonschema.validate(started.json(), shape)
    refused = await bot.update("unknown")
    jsonschema.validate(refused.json(), {"$ref": "#/components/schemas/Refusal", "components": components})


async def test_the_document_names_the_paths_that_are_served(bot: Replica) -> None:
    served = (await bot.http.get(f"{bot.url}/openapi.json")).json()

    assert json.dumps(served, sort_keys=True) == json.dumps(document(), sort_keys=True)
    for path, calls in served["paths"].items():
        for method in set(calls) - {"parameters"}:
            answer = await bot.http.request(method, bot.url + path.replace("{chatId}", "7"))
            assert str(answer.status_code) in calls[method]["responses"], (method, path, answer.status_code)


async def test_a_page_of_a_known_origin_may_call_and_read_the_cursor(start_replica: StartReplica) -> None:
    bot = await start_replica(cors_origins=("https://shop.example.com",))
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    known = await bot.http.options(
        f"{bot.url}/api/chat/actions/start", headers={**asked, "Origin": "https://shop.example.com"}
    )
    foreign = await bot.http.options(
        f"{bot.url}/api/chat/actions/start", headers={**asked, "Origin": "https://evil.example.com"}
    )
    read = await bot.http.get(
        f"{bot.url}/api/chat/actions?workspaceId={WORKSPACE}&chatId=7",
        headers={**BEARER, "Origin": "https://shop.example.com"},
    )

    assert (known.status_code, known.headers["Access-Control-Allow-Origin"]) == (204, "https://shop.example.com")
    assert "Access-Control-Allow-Origin" not in foreign.headers
    assert read.headers["Access-Control-Expose-Headers"] == "X-Chat-Cursor"


@pytest.mark.parametrize("chat", ["a/b", "a.b", "*", ">", "{x}", "имя", "with space", "🙂" * 50, "%2F", "a\nb"])
async def test_a_chat_id_of_any_text_works_in_paths_subjects_and_tables(bot: Replica, chat: str) -> None:
    async with listening(bot.events(quote(chat, safe="")), headers=BEARER) as client:
        await bot.start(chatId=chat)
        await bot.start(chatId=CHAT)
        await client.heard(1)

    assert client.actions == [("a", "processing")]
    assert client.events[0][1]["action"]["chatId"] == chat
    assert [action["chatId"] for action in (await bot.list(chat)).json()] == [chat]
