"""The methods that bots need besides sending: editing, copying, pinning, chats, commands."""

import pytest
from harness.telegram_media import png, upload

CHANNEL = -1001000000001
GROUP = -1002000000001
OTHER_TOKEN = "1002:other-token"
KEYBOARD = {"inline_keyboard": [[{"text": "a", "callback_data": "x"}]]}
GIF = b"GIF89a" + bytes([4, 0, 3, 0]) + bytes(20)


async def photo(client, **params):
    return (await upload(client, "sendPhoto", {"photo": ("a.png", png())}, chat_id=CHANNEL, **params)).body["result"]


async def album(client, *kinds):
    names = [f"f{number}" for number in range(len(kinds))]
    media = [{"type": kind, "media": f"attach://{name}"} for kind, name in zip(kinds, names, strict=True)]
    files = {name: (f"{name}.png", png()) for name in names}
    return (await upload(client, "sendMediaGroup", files, chat_id=CHANNEL, media=media)).body["result"]


async def edit_media(client, message_id, kind, **media):
    item = {"type": kind, "media": "attach://new", **media}
    return await upload(
        client, "editMessageMedia", {"new": ("b.png", png(7, 5))}, chat_id=CHANNEL, message_id=message_id, media=item
    )


async def test_media_is_replaced_with_its_caption(client):
    before = await photo(client, caption="old", reply_markup=KEYBOARD)

    after = (await edit_media(client, 1, "document", caption="<b>new</b>", parse_mode="HTML")).body["result"]

    assert (after["caption"], after["caption_entities"][0]["type"]) == ("new", "bold")
    assert (after["document"]["file_name"], "photo" in after, "reply_markup" in after) == ("b.png", False, False)
    assert after["date"] == before["date"]


async def test_a_text_becomes_a_photo_and_an_item_of_an_album_keeps_its_class(client):
    await client.send("text")
    await album(client, "document", "document")

    changed = await edit_media(client, 1, "photo")
    refused = await edit_media(client, 2, "photo")
    moving = await edit_media(client, 2, "animation")

    assert changed.body["result"]["photo"][0]["width"] == 7
    assert refused.body["description"] == "Bad Request: can't change media type in the album"
    assert moving.body["description"] == "Bad Request: message content type can't be used in an album"


async def test_only_the_buttons_are_edited(client):
    await client.send("text", reply_markup=KEYBOARD)
    button = {"inline_keyboard": [[{"text": "b", "url": "https://example.org/"}]]}
    edit = {"chat_id": CHANNEL, "message_id": 1}

    other = await client.telegram("editMessageReplyMarkup", **edit, reply_markup=button)
    same = await client.telegram("editMessageReplyMarkup", **edit, reply_markup=button)
    none = await client.telegram("editMessageReplyMarkup", **edit)

    assert (other.body["result"]["text"], other.body["result"]["reply_markup"]) == ("text", button)
    assert same.body["description"].startswith("Bad Request: message is not modified")
    assert "reply_markup" not in none.body["result"]


async def test_many_messages_are_deleted_at_once_and_missing_ones_skipped(client):
    for text in ("one", "two", "three"):
        await client.send(text)

    answer = await client.telegram("deleteMessages", chat_id=CHANNEL, message_ids=[1, 3, 99])

    assert answer.body["result"] is True
    assert await client.shown() == ["two"]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (None, "message identifiers are not specified"),
        ({"a": 1}, "expected an Array of message identifiers"),
        (list(range(1, 102)), "too many message identifiers specified"),
        ([0], "invalid message identifier specified"),
        (["x"], "can't parse message identifier as a Number"),
    ],
)
async def test_wrong_numbers_of_messages_are_refused(client, ids, words):
    answer = await client.telegram("deleteMessages", chat_id=CHANNEL, message_ids=ids)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")


async def test_a_copy_has_a_new_number_and_a_forward_its_origin(client):
    await client.control("chats", {"platform": "telegram", "id": GROUP, "type": "supergroup", "limits": []})
    await photo(client, caption="old", reply_markup=KEYBOARD)
    one = {"from_chat_id": CHANNEL, "message_id": 1, "chat_id": GROUP}

    copied = (await client.telegram("copyMessage", **one)).body["result"]
    renamed = (await client.telegram("copyMessage", **one, caption="new")).body["result"]
    forwarded = (await client.telegram("forwardMessage", **one)).body["result"]
    again = await client.telegram("forwardMessage", from_chat_id=GROUP, message_id=3, chat_id=CHANNEL)

    assert (copied, renamed) == ({"message_id": 1}, {"message_id": 2})
    assert await client.shown(chat_id=GROUP) == ["old", "new", "old"]
    assert forwarded["forward_origin"]["type"] == "channel"
    assert (forwarded["forward_origin"]["message_id"], forwarded["chat"]["id"]) == (1, GROUP)
    assert again.body["result"]["forward_origin"] == forwarded["forward_origin"]


async def test_many_are_copied_in_order_and_what_is_protected_is_not(client):
    await client.send("one")
    await client.send("secret", protect_content=True)
    await client.send("three")
    many = {"from_chat_id": CHANNEL, "chat_id": CHANNEL}

    copied = await client.telegram("copyMessages", **many, message_ids=[1, 2, 3, 99])
    refused = await client.telegram("forwardMessage", **many, message_id=2)
    nothing = await client.telegram("forwardMessages", **many, message_ids=[2])
    missing = await client.telegram("copyMessage", **many, message_id=99)

    assert copied.body["result"] == [{"message_id": 4}, {"message_id": 5}]
    assert await client.shown() == ["one", "secret", "three", "one", "three"]
    assert [one.body["description"] for one in (refused, nothing, missing)] == [
        "Bad Request: the message can't be forwarded",
        "Bad Request: there are no messages to forward",
        "Bad Request: message to copy not found",
    ]


async def test_a_pinned_message_is_shown_by_the_chat_until_it_is_unpinned(client):
    for text in ("one", "two"):
        await client.send(text)
    place = {"chat_id": CHANNEL}

    async def pinned():
        return ((await client.telegram("getChat", **place)).body["result"].get("pinned_message") or {}).get("text")

    seen = []
    for method, params in (
        ("pinChatMessage", {"message_id": 1}),
        ("pinChatMessage", {"message_id": 2}),
        ("unpinChatMessage", {}),
        ("unpinAllChatMessages", {}),
    ):
        assert (await client.telegram(method, **place, **params)).body["result"] is True
        seen.append(await pinned())
    missing = await client.telegram("pinChatMessage", **place, message_id=9)
    nothing = await client.telegram("unpinChatMessage", **place)

    assert seen == ["one", "two", "one", None]
    assert missing.body["description"] == "Bad Request: message to pin not found"
    assert nothing.body["description"] == "Bad Request: message to unpin not found"


async def test_a_member_of_a_group_cannot_pin(client):
    await client.control("chats", {"platform": "telegram", "id": GROUP, "type": "supergroup", "limits": []})
    await client.send(chat_id=GROUP)

    answer = await client.telegram("pinChatMessage", chat_id=GROUP, message_id=1)

    assert answer.body["description"] == "Bad Request: not enough rights to manage pinned messages in the chat"


async def test_an_action_is_taken_if_it_is_one(client):
    typing = await client.telegram("sendChatAction", chat_id=CHANNEL, action="typing")
    dancing = await client.telegram("sendChatAction", chat_id=CHANNEL, action="dancing")

    assert (typing.body["result"], dancing.body["description"]) == (
        True,
        "Bad Request: wrong parameter action in request",
    )


async def test_the_administrators_and_the_number_of_members(client):
    await client.control("chats", {"platform": "telegram", "id": 9, "type": "private"})

    owner, bot = (await client.telegram("getChatAdministrators", chat_id=CHANNEL)).body["result"]
    count = await client.telegram("getChatMemberCount", chat_id=CHANNEL)
    private = await client.telegram("getChatAdministrators", chat_id=9)

    assert (owner["status"], bot["status"], bot["user"]["id"]) == ("creator", "administrator", 1001)
    assert count.body["result"] == 2
    assert private.body["description"] == "Bad Request: there are no administrators in the private chat"


async def test_commands_are_kept_by_scope_and_language(client):
    commands = [{"command": "start", "description": "Begin"}]
    await client.telegram("setMyCommands", commands=commands, scope={"type": "default"})
    await client.telegram("setMyCommands", commands=commands, language_code="ru")

    kept = (await client.telegram("getMyCommands")).body["result"]
    await client.telegram("deleteMyCommands")
    wrong = [
        await client.telegram("setMyCommands", commands=[given])
        for given in (
            {"command": "Start!", "description": "x"},
            {"command": "start", "description": ""},
            {"command": "start"},
        )
    ]

    assert kept == commands
    assert (await client.telegram("getMyCommands")).body["result"] == []
    assert (await client.telegram("getMyCommands", language_code="ru")).body["result"] == commands
    assert [one.body["description"] for one in wrong] == [
        "Bad Request: BOT_COMMAND_INVALID",
        "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID",
        "Bad Request: can't parse BotCommand: Can't find field \"description\"",
    ]


async def test_a_bot_that_logged_out_is_refused(client):
    out = await client.telegram("logOut")
    after = await client.send()

    assert (out.body["result"], after.status, after.body["description"]) == (True, 400, "Logged out")


async def test_a_gif_sent_as_a_document_becomes_an_animation_unless_that_is_disabled(client):
    files = {"document": ("a.gif", GIF)}

    moving = (await upload(client, "sendDocument", files, chat_id=CHANNEL)).body["result"]
    still = (await upload(client, "sendDocument", files, chat_id=CHANNEL, disable_content_type_detection=True)).body[
        "result"
    ]

    assert (moving["animation"]["width"], moving["animation"]["height"]) == (4, 3)
    assert moving["document"]["file_id"] == moving["animation"]["file_id"]
    assert ("animation" in still, still["document"]["file_name"]) == (False, "a.gif")


async def test_a_voice_message_and_a_sticker(client):
    voice = await upload(
        client, "sendVoice", {"voice": ("a.ogg", b"OggS")}, chat_id=CHANNEL, caption="hear", duration=3
    )
    sticker = await upload(client, "sendSticker", {"sticker": ("a.png", png(8, 6))}, chat_id=CHANNEL, emoji="👍")
    missing = [await client.telegram(method, chat_id=CHANNEL) for method in ("sendVoice", "sendSticker")]

    heard, stuck = voice.body["result"], sticker.body["result"]
    assert (heard["voice"]["duration"], heard["voice"]["mime_type"], heard["caption"]) == (3, "audio/ogg", "hear")
    assert (stuck["sticker"]["width"], stuck["sticker"]["emoji"], stuck["sticker"]["is_animated"]) == (8, "👍", False)
    assert [one.body["description"] for one in missing] == [
        "Bad Request: there is no voice in the request",
        "Bad Request: there is no sticker in the request",
    ]


async def test_a_poll_and_a_location(client):
    poll = (
        await client.telegram("sendPoll", chat_id=CHANNEL, question="Tea?", options=[{"text": "yes"}, {"text": "no"}])
    ).body["result"]["poll"]
    place = (await client.telegram("sendLocation", chat_id=CHANNEL, latitude=55.75, longitude=37.6)).body["result"]

    assert (poll["question"], [option["text"] for option in poll["options"]]) == ("Tea?", ["yes", "no"])
    assert (poll["is_anonymous"], poll["type"], poll["total_voter_count"]) == (True, "regular", 0)
    assert place["location"] == {"latitude": 55.75, "longitude": 37.6}
    assert "text" not in place


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("sendPoll", {"question": "x"}, "can't parse options JSON object"),
        ("sendPoll", {"question": "x", "options": []}, "poll must have at least one answer option"),
        ("sendPoll", {"question": " ", "options": ["a"]}, "text must be non-empty"),
        ("sendPoll", {"question": "x" * 301, "options": ["a"]}, "poll question length must not exceed 300"),
        ("sendLocation", {"longitude": 1}, "latitude is empty"),
    ],
)
async def test_an_impossible_poll_or_location_is_refused(client, method, params, words):
    answer = await client.telegram(method, chat_id=CHANNEL, **params)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")
