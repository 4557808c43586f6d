"""Editing and deleting: whose message, how old, and what an edit leaves of it."""

import pytest
from harness.telegram_media import png, upload

TOKEN = "1001:telegram-token"
OTHER_TOKEN = "1002:other-token"
CHANNEL = -1001000000001
GROUP = -50
KEYBOARD = {"inline_keyboard": [[{"text": "a", "callback_data": "x"}]]}
NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup "
    "are exactly the same as a current content and reply markup of the message"
)


@pytest.fixture
async def in_group(client):
    """Two bots in a group, and one message of each: 1 is ours, 2 is the other's."""
    await client.control("tokens", {"platform": "telegram", "token": OTHER_TOKEN, "limits": []})
    await client.control("chats", {"platform": "telegram", "id": GROUP, "type": "group", "limits": []})
    for token in (TOKEN, OTHER_TOKEN):
        await client.telegram("sendMessage", token=token, chat_id=GROUP, text="hello")
    return client


async def send_photo(client, **params):
    return (await upload(client, "sendPhoto", {"photo": ("a.png", png())}, chat_id=CHANNEL, **params)).body["result"]


async def test_an_edited_text_keeps_its_place_and_tells_when_it_was_edited(client, clock):
    await client.send("first", reply_markup=KEYBOARD)
    await client.send("second")
    clock.advance(60)

    answer = await client.telegram(
        "editMessageText", chat_id=CHANNEL, message_id=1, text="<b>new</b>", parse_mode="HTML"
    )

    message = answer.body["result"]
    assert (message["text"], message["entities"][0]["type"]) == ("new", "bold")
    assert (message["edit_date"] - message["date"], "reply_markup" in message) == (60, False)
    assert await client.shown() == ["new", "second"]
    assert (await client.log())[-1]["message_ids"] == [1]


async def test_an_edited_caption_keeps_the_media(client):
    before = await send_photo(client, caption="old", reply_markup=KEYBOARD)

    answer = await client.telegram(
        "editMessageCaption", chat_id=CHANNEL, message_id=1, caption="new", reply_markup=KEYBOARD
    )

    message = answer.body["result"]
    assert (message["caption"], message["photo"]) == ("new", before["photo"])
    assert message["reply_markup"] == KEYBOARD


async def test_a_caption_can_be_taken_away(client):
    await send_photo(client, caption="old")

    answer = await client.telegram("editMessageCaption", chat_id=CHANNEL, message_id=1)

    assert "caption" not in answer.body["result"]


async def test_the_same_again_is_refused_as_not_modified(client):
    await client.send("same", reply_markup=KEYBOARD)
    again = {"chat_id": CHANNEL, "message_id": 1, "text": "same"}

    same = await client.telegram("editMessageText", **again, reply_markup=KEYBOARD)
    without_buttons = await client.telegram("editMessageText", **again)
    twice = await client.telegram("editMessageText", **again)

    assert (same.status, same.body["description"]) == (400, NOT_MODIFIED)
    assert without_buttons.status == 200
    assert twice.body["description"] == NOT_MODIFIED


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("editMessageText", {"message_id": 1, "text": ""}, "message text is empty"),
        ("editMessageText", {"message_id": 1, "text": "a" * 4097}, "MESSAGE_TOO_LONG"),
        ("editMessageText", {"message_id": 2, "text": "x"}, "there is no text in the message to edit"),
        ("editMessageText", {"message_id": 9, "text": "x"}, "message to edit not found"),
        ("editMessageText", {"text": "x"}, "message to edit not found"),
        ("editMessageText", {"text": "x", "chat_id": None}, "message identifier is not specified"),
        ("editMessageText", {"message_id": 1, "text": "x", "chat_id": -1009}, "chat not found"),
        ("editMessageCaption", {"message_id": 1, "caption": "x"}, "there is no caption in the message to edit"),
        ("editMessageCaption", {"message_id": 2, "caption": "a" * 1025}, "message caption is too long"),
        ("deleteMessage", {}, "message identifier is not specified"),
        ("deleteMessage", {"message_id": 9}, "message to delete not found"),
    ],
)
async def test_a_wrong_change_is_refused_in_telegrams_words(client, method, params, words):
    await client.send("text")
    await send_photo(client)

    answer = await client.telegram(method, **{"chat_id": CHANNEL, **params})

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")


@pytest.mark.parametrize(
    ("message_id", "role", "edited", "deleted"),
    [(1, "member", 200, 200), (2, "member", 400, 400), (2, "administrator", 400, 200)],
)
async def test_in_a_group_only_the_own_is_edited_and_an_administrator_deletes_all(
    in_group, message_id, role, edited, deleted
):
    await in_group.control("chats", {"platform": "telegram", "id": GROUP, "role": role})

    edit = await in_group.telegram("editMessageText", chat_id=GROUP, message_id=message_id, text="new")
    delete = await in_group.telegram("deleteMessage", chat_id=GROUP, message_id=message_id)

    assert (edit.status, delete.status) == (edited, deleted)


async def test_what_is_older_than_two_days_stays(client, clock):
    await client.send("old")
    clock.advance(48 * 3600)
    await client.send("young")
    clock.advance(1)

    old = await client.telegram("deleteMessage", chat_id=CHANNEL, message_id=1)
    young = await client.telegram("deleteMessage", chat_id=CHANNEL, message_id=2)

    assert old.body["description"] == "Bad Request: message can't be deleted"
    assert young.status == 200
