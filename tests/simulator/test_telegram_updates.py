"""People who talk to a bot in Telegram, and how the bot hears of it by long polling."""

import asyncio
import base64

import pytest
from harness.eventually import eventually
from harness.telegram_media import png

CHANNEL = -1001000000001
GROUP = -1002000000001
TOKEN = "1001:telegram-token"
ANN = {"first_name": "Ann", "username": "ann"}
CONFLICT = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
YES = [[{"text": "Yes", "callback_data": "y"}, {"text": "Site", "url": "https://example.org/"}]]


async def do(client, action, user_id=9, **body):
    return await client.control(f"telegram/customers/{user_id}/{action}", body)


async def updates(client, **params):
    return (await client.telegram("getUpdates", **params)).body["result"]


async def polls(client):
    return (await client.ask("GET", "/_sim/telegram/polls")).body["polls"]


async def test_a_start_is_a_message_with_a_command(client):
    await do(client, "start", payload="ref", **ANN)

    (update,) = await updates(client)

    message = update["message"]
    assert message["text"] == "/start ref"
    assert message["entities"] == [{"type": "bot_command", "offset": 0, "length": 6}]
    assert message["from"] == {"id": 9, "is_bot": False, "first_name": "Ann", "username": "ann", "language_code": "ru"}
    assert message["chat"] == {"id": 9, "type": "private", "first_name": "Ann", "username": "ann"}


async def test_an_update_is_repeated_until_the_next_offset_confirms_it(client):
    for text in ("one", "two", "three"):
        await do(client, "write", text=text)

    first = await updates(client, limit=2)
    again = await updates(client)
    rest = await updates(client, offset=first[-1]["update_id"] + 1)
    nothing = await updates(client, offset=rest[-1]["update_id"] + 1)

    assert [update["message"]["text"] for update in again] == ["one", "two", "three"]
    assert [update["update_id"] - first[0]["update_id"] for update in again] == [0, 1, 2]
    assert ([update["message"]["text"] for update in rest], nothing) == (["three"], [])


async def test_a_negative_offset_keeps_only_the_newest(client):
    for text in ("one", "two", "three"):
        await do(client, "write", text=text)

    newest = await updates(client, offset=-1)

    assert [update["message"]["text"] for update in newest] == ["three"]
    assert await updates(client) == newest


async def test_a_poll_waits_for_an_update(client):
    poll = asyncio.create_task(updates(client, timeout=30))
    await eventually(lambda: polls(client))
    await do(client, "write", text="late")

    async with asyncio.timeout(10):
        (update,) = await poll

    assert update["message"]["text"] == "late"


async def test_a_second_poll_ends_the_first(client):
    first = asyncio.create_task(client.telegram("getUpdates", timeout=30))
    second = None
    try:
        await eventually(lambda: polls(client))
        second = asyncio.create_task(client.telegram("getUpdates", timeout=30))
        async with asyncio.timeout(10):
            ended = await first
        await do(client, "write", text="to the second")
        async with asyncio.timeout(10):
            got = await second
    finally:
        for task in (first, second):
            if task is not None:
                task.cancel()

    assert (ended.status, ended.body["description"]) == (409, CONFLICT)
    assert got.body["result"][0]["message"]["text"] == "to the second"


async def test_only_wanted_types_are_kept(client):
    await updates(client, allowed_updates=["callback_query"])
    await do(client, "write", text="unwanted")
    await client.send(chat_id=9, reply_markup={"inline_keyboard": YES})
    await do(client, "press", message_id=2, button="Yes")
    wanted = await updates(client)

    await updates(client, allowed_updates=[])
    await do(client, "write", text="wanted")

    assert [sorted(update) for update in wanted] == [["callback_query", "update_id"]]
    assert "message" in (await updates(client))[-1]


async def test_an_update_lives_for_a_day_and_a_pressed_button_for_two_and_a_half_minutes(client, clock):
    await do(client, "write", text="hello")
    await client.send(chat_id=9, reply_markup={"inline_keyboard": YES})
    await do(client, "press", message_id=2, button="Yes")
    at_once = await updates(client)
    clock.advance(151)
    later = await updates(client)
    clock.advance(24 * 3600)

    assert [len(at_once), len(later), len(await updates(client))] == [2, 1, 0]


async def test_a_pressed_button_is_a_query_that_the_bot_answers(client):
    await do(client, "start")
    await client.send(chat_id=9, text="choose", reply_markup={"inline_keyboard": YES})
    await do(client, "press", message_id=2, button="Yes", **ANN)

    query = (await updates(client))[-1]["callback_query"]
    answer = await client.telegram("answerCallbackQuery", callback_query_id=query["id"], text="Thanks", show_alert=True)

    assert (query["data"], query["from"]["id"], query["message"]["text"]) == ("y", 9, "choose")
    assert query["message"]["reply_markup"] == {"inline_keyboard": YES}
    assert (answer.body["result"], query["chat_instance"].isdigit()) == (True, True)
    (seen,) = (await client.ask("GET", "/_sim/telegram/callbacks")).body["callbacks"]
    assert (seen["answers"], seen["text"], seen["show_alert"]) == (1, "Thanks", True)


@pytest.mark.parametrize(
    ("params", "description"),
    [
        ({}, "query is too old and response timeout expired or query ID is invalid"),
        ({"callback_query_id": "77"}, "query is too old and response timeout expired or query ID is invalid"),
    ],
)
async def test_an_unknown_query_cannot_be_answered(client, params, description):
    answer = await client.telegram("answerCallbackQuery", **params)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {description}")


async def test_an_answer_to_a_query_comes_too_late_and_is_not_too_long(client, clock):
    await client.send(chat_id=CHANNEL, reply_markup={"inline_keyboard": YES})
    pressed = await do(client, "press", chat_id=CHANNEL, message_id=1, button="Yes")
    query = {"callback_query_id": pressed.body["update"]["callback_query"]["id"]}

    long = await client.telegram("answerCallbackQuery", **query, text="x" * 201)
    foreign = await client.telegram("answerCallbackQuery", **query, url="https://example.org/")
    clock.advance(151)
    late = await client.telegram("answerCallbackQuery", **query)

    assert [one.body["description"] for one in (long, foreign, late)] == [
        "Bad Request: MESSAGE_TOO_LONG",
        "Bad Request: URL_INVALID",
        "Bad Request: query is too old and response timeout expired or query ID is invalid",
    ]


async def test_what_is_posted_to_a_channel_or_edited_is_told_so(client):
    await do(client, "write", chat_id=CHANNEL, text="post")
    await do(client, "edit", chat_id=CHANNEL, message_id=1, text="better")
    await do(client, "write", text="hello")
    await do(client, "edit", message_id=1, text="hi")

    post, edited_post, message, edited = await updates(client)

    assert "from" not in post["channel_post"]
    assert post["channel_post"]["sender_chat"]["id"] == CHANNEL
    assert edited_post["edited_channel_post"]["text"] == "better"
    assert message["message"]["text"] == "hello"
    assert (edited["edited_message"]["text"], "edit_date" in edited["edited_message"]) == ("hi", True)


async def test_a_person_sends_a_file_that_the_bot_downloads(client):
    picture = png()
    file = {"kind": "photo", "name": "a.png", "data": base64.b64encode(picture).decode()}
    await do(client, "write", text="look", file=file)

    message = (await updates(client))[-1]["message"]
    path = (await client.telegram("getFile", file_id=message["photo"][-1]["file_id"])).body["result"]["file_path"]

    assert message["caption"] == "look"
    async with client.session.get(f"{client.base}/file/bot{TOKEN}/{path}") as response:
        assert await response.read() == picture


async def test_a_bot_hears_when_it_is_stopped_added_and_removed(client):
    await do(client, "start")
    await do(client, "stop")
    refused = await client.send(chat_id=9)
    await do(client, "start")
    await do(client, "add_bot", chat_id=GROUP, title="Friends", type="supergroup", role="administrator")
    await do(client, "remove_bot", chat_id=GROUP)

    changes = [update["my_chat_member"] for update in await updates(client) if "my_chat_member" in update]

    assert refused.body["description"] == "Forbidden: bot was blocked by the user"
    assert [(one["old_chat_member"]["status"], one["new_chat_member"]["status"]) for one in changes] == [
        ("member", "kicked"),
        ("kicked", "member"),
        ("left", "administrator"),
        ("administrator", "kicked"),
    ]
    assert (changes[2]["chat"]["title"], changes[0]["from"]["id"]) == ("Friends", 9)


async def test_a_bot_edits_its_own_messages_only(client):
    await do(client, "write", text="mine")

    answer = await client.telegram("editMessageText", chat_id=9, message_id=1, text="yours")

    assert answer.body["description"] == "Bad Request: message can't be edited"


@pytest.mark.parametrize(
    ("action", "body", "reason"),
    [
        ("dance", {}, "unknown action 'dance'"),
        ("write", {}, "give `text` or `file`"),
        ("write", {"chat_id": -1009, "text": "x"}, "chat -1009 not found"),
        ("press", {"message_id": 5, "button": "Yes"}, "message 5 not found"),
        ("write", {"text": "x", "token": "nobody"}, "`token` must be the token of a bot in Telegram"),
        ("write", {"text": "x", "colour": "red"}, "Object contains unknown field `colour`"),
    ],
)
async def test_what_a_person_cannot_do_is_explained(client, action, body, reason):
    answer = await do(client, action, **body)

    assert answer.status == 400
    assert reason in answer.body["error"]


async def test_numbers_of_updates_go_on_after_a_reset(client):
    await do(client, "write", text="before")
    (before,) = await updates(client)
    await client.control("reset", {})
    await client.control("tokens", {"platform": "telegram", "token": TOKEN, "limits": []})
    await do(client, "write", text="after")

    (after,) = await updates(client, offset=before["update_id"] + 1)

    assert after["message"]["text"] == "after"
