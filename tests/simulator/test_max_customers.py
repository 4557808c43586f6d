"""People who talk to a bot in MAX, and how the bot hears of it by long polling."""

import asyncio
import base64

import pytest

CHANNEL = -7001
DIALOG = 9 ^ 1 << 40
"""The chat with person 9."""
TOKEN = "max-token"
ANN = {"first_name": "Ann", "last_name": "Lee"}


async def do(client, deed, user_id=9, **body):
    return await client.control(f"max/customers/{user_id}/{deed}", body)


async def updates(client, query="timeout=0", token=TOKEN):
    return await client.max("GET", f"/updates?{query}", token=token)


async def with_buttons(client, *buttons):
    keyboard = [{"type": "inline_keyboard", "payload": {"buttons": [list(buttons)]}}]
    answer = await client.max("POST", "/messages?user_id=9", json={"text": "choose", "attachments": keyboard})
    return answer.body["message"]["body"]["mid"]


YES = {"type": "callback", "text": "Yes", "payload": "yes"}
SAY = {"type": "message", "text": "Help"}
LINK = {"type": "link", "text": "Site", "url": "https://example.org"}


async def test_a_start_is_told_with_the_payload_of_the_link(client):
    await do(client, "start", payload="ref_7", **ANN)

    (update,) = (await updates(client)).body["updates"]

    user = update.pop("user")
    assert update == {
        "update_type": "bot_started",
        "timestamp": 1772323200000,
        "chat_id": DIALOG,
        "user_id": 9,
        "user_locale": "ru",
        "payload": "ref_7",
    }
    assert (user["user_id"], user["name"], user["is_bot"]) == (9, "Ann Lee", False)


async def test_a_message_of_a_person_has_the_bot_as_recipient(client):
    bot_id = (await client.max("GET", "/me")).body["user_id"]
    await do(client, "write", text="hello", **ANN)

    (update,) = (await updates(client)).body["updates"]

    message = update["message"]
    assert (update["update_type"], update["user_locale"]) == ("message_created", "ru")
    assert message["recipient"] == {"chat_id": DIALOG, "chat_type": "dialog", "user_id": bot_id}
    assert (message["sender"]["user_id"], message["body"]["text"]) == (9, "hello")
    assert "attachments" not in message["body"]


async def test_a_bot_cannot_write_first(client):
    before = await client.max("POST", "/messages?user_id=9", json={"text": "hello"})
    await do(client, "start")
    after = await client.max("POST", "/messages?user_id=9", json={"text": "hello"})

    assert (before.status, after.status) == (404, 200)


async def test_who_stops_the_bot_hears_no_more(client):
    await do(client, "start")
    await do(client, "stop")

    refused = await client.max("POST", "/messages?user_id=9", json={"text": "hello"})
    await do(client, "start")
    accepted = await client.max("POST", "/messages?user_id=9", json={"text": "hello"})

    assert (refused.status, refused.body["code"], accepted.status) == (403, "chat.denied", 200)


async def test_a_person_sends_a_picture(client):
    data = base64.b64encode(b"picture").decode()
    await do(client, "write", files=[{"type": "image", "name": "a.png", "data": data}])

    (update,) = (await updates(client)).body["updates"]

    (shown,) = update["message"]["body"]["attachments"]
    async with client.session.get(shown["payload"]["url"]) as response:
        assert await response.read() == b"picture"


async def test_a_pressed_button_comes_with_its_message(client):
    await do(client, "start")
    mid = await with_buttons(client, YES)
    await do(client, "press", message_id=mid, button="Yes")

    (update,) = (await updates(client)).body["updates"]

    assert update["update_type"] == "message_callback"
    assert update["message"]["body"]["mid"] == mid
    assert (update["callback"]["payload"], update["callback"]["user"]["user_id"]) == ("yes", 9)


async def press(client, mid, button, **body):
    return (await do(client, "press", message_id=mid, button=button, **body)).body["update"]


NO = {"type": "callback", "text": "No", "payload": "no"}


async def test_all_presses_on_one_keyboard_have_one_callback_id_and_their_own_time(client, clock):
    await do(client, "start")
    mid = await with_buttons(client, YES, NO)

    presses = []
    for button in ("Yes", "No"):
        presses.append((await press(client, mid, button))["callback"])
        clock.advance(1)

    shown = (await client.max("GET", f"/messages/{mid}")).body["body"]["attachments"][0]
    assert {one["callback_id"] for one in presses} == {shown["callback_id"]}
    assert presses[1]["timestamp"] - presses[0]["timestamp"] == 1000
    assert [one["payload"] for one in presses] == ["yes", "no"]


async def test_another_keyboard_has_another_callback_id(client):
    await do(client, "start")
    first, second = await with_buttons(client, YES), await with_buttons(client, YES)
    await client.max("PUT", f"/messages?message_id={second}", json={"text": "choose"})

    presses = [await press(client, mid, "Yes") for mid in (first, second)]
    keyboard = [{"type": "inline_keyboard", "payload": {"buttons": [[YES, NO]]}}]
    await client.max("PUT", f"/messages?message_id={second}", json={"text": "choose", "attachments": keyboard})
    presses.append(await press(client, second, "Yes"))

    assert len({one["callback"]["callback_id"] for one in presses}) == 3


async def test_an_answer_goes_to_the_last_press_on_the_keyboard(client):
    await do(client, "start")
    mid = await with_buttons(client, YES, NO)
    for button in ("Yes", "No"):
        callback_id = (await press(client, mid, button))["callback"]["callback_id"]

    await client.max("POST", f"/answers?callback_id={callback_id}", json={"notification": "seen"})

    told = (await client.ask("GET", "/_sim/max/callbacks")).body["callbacks"]
    assert [(one["payload"], one["notification"]) for one in told] == [("yes", None), ("no", "seen")]


@pytest.mark.parametrize("who", ["bot", "person"])
async def test_a_press_on_a_removed_message_has_no_message(client, who):
    await do(client, "start")
    mid = await with_buttons(client, YES)
    if who == "bot":
        await client.max("DELETE", f"/messages?message_id={mid}")
    else:
        await do(client, "remove", message_id=mid)

    update = await press(client, mid, "Yes")

    assert update["message"] is None
    assert (update["callback"]["payload"], update["callback"]["user"]["user_id"]) == ("yes", 9)
    assert "chat_id" not in update


async def test_an_edited_message_keeps_its_number(client):
    await do(client, "start")
    mid = (await do(client, "write", text="hello")).body["update"]["message"]["body"]["mid"]

    update = (await do(client, "edit", message_id=mid, text="hello!")).body["update"]

    assert update["update_type"] == "message_edited"
    assert (update["message"]["body"]["mid"], update["message"]["body"]["text"]) == (mid, "hello!")
    assert await client.shown("max", DIALOG) == ["hello!"]


async def test_a_removed_message_is_told_by_its_number(client):
    await do(client, "start")
    mid = (await do(client, "write", text="hello")).body["update"]["message"]["body"]["mid"]

    update = (await do(client, "remove", message_id=mid)).body["update"]

    assert {name: update[name] for name in ("update_type", "message_id", "chat_id", "user_id")} == {
        "update_type": "message_removed",
        "message_id": mid,
        "chat_id": DIALOG,
        "user_id": 9,
    }
    assert await client.shown("max", DIALOG) == []


async def test_nobody_changes_the_words_of_others(client):
    await do(client, "start")
    mid = await with_buttons(client, YES)
    await do(client, "add_bot", chat_id=-800, type="chat")
    group = (await do(client, "write", 8, chat_id=-800, text="mine")).body["update"]["message"]["body"]["mid"]

    answers = [
        await do(client, "edit", message_id=mid, text="no"),
        await do(client, "edit", message_id=group, text="no"),
        await do(client, "remove", message_id=group),
        await do(client, "remove", message_id="mid.none"),
    ]

    assert [answer.status for answer in answers] == [400] * 4


async def test_another_bot_in_a_group_is_one(client):
    await do(client, "add_bot", chat_id=-800, type="chat")

    update = (await do(client, "write", 77, chat_id=-800, text="beep", is_bot=True)).body["update"]

    assert update["message"]["recipient"] == {"chat_id": -800, "chat_type": "chat"}
    assert update["message"]["sender"]["is_bot"] is True


async def test_the_messages_of_a_dialog_are_listed_by_its_number_only(client):
    await do(client, "start")
    await client.max("POST", "/messages?user_id=9", json={"text": "hello"})

    listed = await client.max("GET", f"/messages?chat_id={DIALOG}")
    by_person = await client.max("GET", "/messages?user_id=9")

    assert [one["body"]["text"] for one in listed.body["messages"]] == ["hello"]
    assert listed.body["messages"][0]["sender"]["is_bot"] is True
    assert by_person.status == 400


async def test_a_message_button_speaks_for_the_person(client):
    await do(client, "start")
    mid = await with_buttons(client, SAY)
    await do(client, "press", message_id=mid, button="Help")

    (update,) = (await updates(client)).body["updates"]

    assert (update["update_type"], update["message"]["body"]["text"]) == ("message_created", "Help")


async def test_an_answer_changes_the_message_and_notifies_the_person(client):
    await do(client, "start")
    mid = await with_buttons(client, YES)
    pressed = await do(client, "press", message_id=mid, button="Yes")
    callback_id = pressed.body["update"]["callback"]["callback_id"]

    answer = await client.max(
        "POST",
        f"/answers?callback_id={callback_id}",
        json={"message": {"text": "done", "attachments": []}, "notification": "thanks"},
    )

    assert answer.body == {"success": True}
    message = (await client.max("GET", f"/messages/{mid}")).body
    assert message["body"]["text"] == "done"
    assert "attachments" not in message["body"]
    (callback,) = (await client.ask("GET", "/_sim/max/callbacks")).body["callbacks"]
    assert (callback["answers"], callback["notification"]) == (1, "thanks")


async def test_an_answer_without_attachments_keeps_the_buttons(client):
    await do(client, "start")
    mid = await with_buttons(client, YES)
    pressed = await do(client, "press", message_id=mid, button="Yes")
    callback_id = pressed.body["update"]["callback"]["callback_id"]

    await client.max("POST", f"/answers?callback_id={callback_id}", json={"message": {"text": "again"}})

    body = (await client.max("GET", f"/messages/{mid}")).body["body"]
    assert (body["text"], body["attachments"][0]["type"]) == ("again", "inline_keyboard")


async def test_an_answer_to_nothing_fails(client):
    unknown = await client.max("POST", "/answers?callback_id=none", json={"notification": "x"})
    unreadable = await client.max("POST", "/answers?callback_id=none", json={"notification": 5})

    assert (unknown.status, unknown.body["success"]) == (200, False)
    assert (unreadable.status, unreadable.body["code"]) == (400, "proto.payload")


async def test_answers_share_the_rate_of_their_chat(client):
    await client.control("chats", {"platform": "max", "id": DIALOG, "limits": [{"count": 2, "per": 1}]})
    mid = await with_buttons(client, YES)
    pressed = await do(client, "press", message_id=mid, button="Yes")
    path = f"/answers?callback_id={pressed.body['update']['callback']['callback_id']}"

    statuses = [(await client.max("POST", path, json={"notification": "x"})).status for _ in range(2)]

    assert statuses == [200, 429]


async def test_a_person_cannot_press_what_is_not_there(client):
    await do(client, "start")
    mid = await with_buttons(client, LINK)

    answers = [
        await do(client, "press", message_id=mid, button="No"),
        await do(client, "press", message_id=mid, button="Site"),
        await do(client, "press", message_id="mid.none", button="Yes"),
        await do(client, "dance"),
        await do(client, "write"),
        await do(client, "write", text="x", token="nobody"),
    ]

    assert [answer.status for answer in answers] == [400] * 6


async def test_a_bot_learns_of_a_channel_when_it_is_added(client):
    await do(client, "add_bot", chat_id=-800, title="New", type="channel")
    added = (await updates(client)).body["updates"][0]
    posted = await client.post(chat_id=-800)
    await do(client, "remove_bot", chat_id=-800)
    removed = (await updates(client)).body["updates"][0]
    refused = await client.post(chat_id=-800)

    assert (added["update_type"], added["chat_id"], added["is_channel"]) == ("bot_added", -800, True)
    assert (removed["update_type"], removed["chat_id"]) == ("bot_removed", -800)
    assert (posted.status, refused.status) == (200, 403)


async def test_in_a_group_the_recipient_is_the_group(client):
    await do(client, "add_bot", chat_id=-900, type="chat")
    await do(client, "write", chat_id=-900, text="hello")

    update = (await updates(client)).body["updates"][0]

    assert update["message"]["recipient"] == {"chat_id": -900, "chat_type": "chat"}
    assert "user_locale" not in update


async def test_a_marker_declares_everything_before_it_read(client):
    first = await updates(client)
    for text in ("one", "two", "three"):
        await do(client, "write", text=text)

    newest = await updates(client)
    unread = await updates(client, f"timeout=0&limit=2&marker={first.body['marker']}")
    rest = await updates(client, f"timeout=0&marker={unread.body['marker']}")
    none = await updates(client, f"timeout=0&marker={rest.body['marker']}")

    def texts(answer):
        return [update["message"]["body"]["text"] for update in answer.body["updates"]]

    assert [texts(answer) for answer in (newest, unread, rest, none)] == [["three"], ["one", "two"], ["three"], []]
    assert none.body["marker"] == rest.body["marker"] == newest.body["marker"]


async def test_only_the_types_asked_for_are_given(client):
    await do(client, "start")
    await do(client, "write", text="one")

    answer = await updates(client, "timeout=0&marker=1&types=bot_started,bot_stopped")

    assert [update["update_type"] for update in answer.body["updates"]] == ["bot_started"]


async def test_a_poll_waits_for_what_happens_next(client):
    polling = asyncio.create_task(updates(client, "timeout=90"))
    await client.max("GET", "/me")
    await do(client, "write", text="late")

    answer = await polling

    assert answer.body["updates"][0]["message"]["body"]["text"] == "late"


@pytest.mark.parametrize("query", ["timeout=91", "timeout=x", "limit=0", "limit=1001"])
async def test_a_poll_beyond_the_limits_is_refused(client, query):
    assert (await updates(client, query)).status == 400


async def test_each_bot_hears_its_own_people(client):
    await client.control("tokens", {"platform": "max", "token": "other", "limits": []})
    await do(client, "write", text="to other", token="other")

    assert (await updates(client)).body["updates"] == []
    assert len((await updates(client, token="other")).body["updates"]) == 1


async def test_a_bot_edits_and_deletes_its_own_words_only(client):
    written = (await do(client, "write", text="mine")).body["update"]["message"]["body"]["mid"]

    edited = await client.max("PUT", f"/messages?message_id={written}", json={"text": "yours"})
    deleted = await client.max("DELETE", f"/messages?message_id={written}")

    assert [edited.body["success"], deleted.body["success"]] == [False, False]
    assert await client.shown("max", DIALOG) == ["mine"]
