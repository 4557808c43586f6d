"""The four examples of the document."""

from bot.support.listener import listening
from bot.support.replicas import BEARER, CHAT, WORKSPACE, Replica


async def test_example_1_a_repeated_start_creates_one_action_and_publishes_it_once(bot: Replica) -> None:
    async with listening(bot.events(), headers=BEARER) as client:
        answers = [await bot.start("uuid-123", actionType="transcribe_audio") for _ in range(3)]
        await client.heard(1)
        await bot.update("uuid-123")
        await client.heard(2)

    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert {answer.json()["status"] for answer in answers} == {"processing"}
    assert {answer.json()["createdAt"] for answer in answers} == {answers[0].json()["createdAt"]}
    assert client.actions == [("uuid-123", "processing"), ("uuid-123", "done")]


async def test_example_2_a_repeated_update_ends_the_action_once(bot: Replica) -> None:
    await bot.start("uuid-123")
    async with listening(bot.events(), headers=BEARER) as client:
        answers = [await bot.update("uuid-123") for _ in range(2)]
        await bot.start("last")
        await client.heard(2)

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert client.actions == [("uuid-123", "done"), ("last", "processing")]


async def test_example_3_a_start_after_done_does_not_go_back(bot: Replica) -> None:
    await bot.start("uuid-123")
    ended = await bot.update("uuid-123")

    again = await bot.start("uuid-123")

    assert (again.status_code, again.json()) == (200, ended.json())
    assert (await bot.list()).json() == []


async def test_example_4_an_update_before_its_start_is_unknown(bot: Replica) -> None:
    answer = await bot.update("uuid-123")

    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    problem = answer.json()
    assert problem["title"] == "unknown actionId"
    assert problem["detail"] == "Действие с actionId 'uuid-123' не найдено. Сначала вызовите start."
    assert (await bot.list()).json() == []


async def test_an_answer_has_the_nine_fields_of_the_contract(bot: Replica) -> None:
    answer = await bot.start("a", displayText="<b>Читаем</b>", payload={"file": "a.ogg"})

    action = answer.json()
    assert set(action) == {
        *("workspaceId", "chatId", "actionId", "actionType", "status"),
        *("displayText", "payload", "createdAt", "updatedAt"),
    }
    assert (action["workspaceId"], action["chatId"], action["displayText"]) == (WORKSPACE, CHAT, "Читаем")
    assert action["payload"] == {"file": "a.ogg"}
    assert answer.headers["X-Chat-Cursor"] == "1"
