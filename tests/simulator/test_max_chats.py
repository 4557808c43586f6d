"""Chats, members, pins, the bot's profile and videos in MAX, in the shapes of captured payloads."""

import io

import pytest

CHANNEL = -7001
GROUP = -7002
FIELDS_OF_A_MEMBER = {
    "user_id",
    "first_name",
    "is_bot",
    "last_activity_time",
    "name",
    "last_access_time",
    "join_time",
    "is_owner",
    "is_admin",
}


@pytest.fixture
async def group(client):
    await client.control("chats", {"platform": "max", "id": GROUP, "type": "chat", "title": "Friends", "limits": []})
    return client


async def test_a_keyboard_comes_first_with_an_id_and_its_buttons_have_an_intent(client):
    buttons = [
        [{"type": "callback", "text": "Yes", "payload": "y"}, {"type": "link", "text": "Go", "url": "https://e.com"}]
    ]
    location = {"type": "location", "latitude": 1.5, "longitude": 2.5}
    keyboard = {"type": "inline_keyboard", "payload": {"buttons": buttons}}

    body = (await client.post(attachments=[location, keyboard])).body["message"]["body"]
    again = (await client.max("GET", f"/messages/{body['mid']}")).body["body"]

    first, second = body["attachments"]
    assert (first["type"], second) == ("inline_keyboard", location)
    assert first["payload"]["buttons"][0][0] == {"intent": "default", **buttons[0][0]}
    assert again["attachments"][0]["callback_id"] == first["callback_id"]


@pytest.mark.parametrize(("intent", "status"), [("positive", 200), ("angry", 400)])
async def test_an_intent_is_one_of_three(client, intent, status):
    button = {"type": "callback", "text": "a", "payload": "p", "intent": intent}

    answer = await client.post(attachments=[{"type": "inline_keyboard", "payload": {"buttons": [[button]]}}])

    assert answer.status == status


async def test_marks_are_counted_in_utf16_units(client):
    body = (await client.post("👍 **б**", format="markdown")).body["message"]["body"]

    assert body["markup"] == [{"type": "strong", "from": 3, "length": 1}]


async def test_a_bot_renames_itself_and_sets_its_commands(client):
    commands = [{"name": "start", "description": "Begin"}]

    changed = await client.max(
        "PATCH", "/me", json={"first_name": "Herald", "description": "News", "commands": commands}
    )
    fewer = await client.max("PATCH", "/me/commands", json={"commands": []})
    wrong = await client.max("PATCH", "/me", json={"commands": [{"name": "x" * 65}]})

    assert (changed.body["first_name"], changed.body["description"], changed.body["commands"]) == (
        "Herald",
        "News",
        commands,
    )
    assert ("commands" in fewer.body, fewer.body["name"], wrong.status) == (False, "Herald", 400)


async def test_one_message_is_pinned_at_a_time(group):
    mids = [(await group.post(text, chat_id=GROUP)).body["message"]["body"]["mid"] for text in ("one", "two")]
    path = f"/chats/{GROUP}/pin"

    none = await group.max("GET", path)
    for mid in mids:
        assert (await group.max("PUT", path, json={"message_id": mid})).body == {"success": True}
    pinned = await group.max("GET", path)
    shown = await group.max("GET", f"/chats/{GROUP}")
    removed = await group.max("DELETE", path)
    again = await group.max("DELETE", path)
    foreign = await group.max("PUT", path, json={"message_id": "mid.unknown"})

    assert none.body == {}
    assert pinned.body["message"]["body"]["text"] == "two"
    assert shown.body["pinned_message"]["body"]["text"] == "two"
    assert [one.body["success"] for one in (removed, again, foreign)] == [True, False, False]


async def test_members_are_listed_added_and_removed(group):
    path = f"/chats/{GROUP}/members"
    bot, owner = (await group.max("GET", path)).body["members"]

    await group.max("POST", path, json={"user_ids": [5, 6]})
    one = await group.max("GET", f"{path}?user_ids=5")
    page = await group.max("GET", f"{path}?count=3")
    rest = await group.max("GET", f"{path}?count=3&marker={page.body['marker']}")
    removed = await group.max("DELETE", f"{path}?user_id=5")
    kept = await group.max("DELETE", f"{path}?user_id={owner['user_id']}")

    assert (bot["is_bot"], bot["is_admin"], owner["is_owner"]) == (True, True, True)
    assert set(owner) >= FIELDS_OF_A_MEMBER
    assert [member["user_id"] for member in one.body["members"]] == [5]
    assert ([member["user_id"] for member in rest.body["members"]], "marker" in rest.body) == ([6], False)
    assert (removed.body["success"], kept.body["success"]) == (True, False)


async def test_administrators_are_appointed_and_dismissed(group):
    path = f"/chats/{GROUP}/members/admins"
    await group.max("POST", f"/chats/{GROUP}/members", json={"user_ids": [5]})
    new = {"admins": [{"user_id": 5, "permissions": ["write", "pin_message"]}]}

    appointed = await group.max("POST", path, json=new)
    listed = (await group.max("GET", path)).body["members"]
    dismissed = await group.max("DELETE", f"{path}/5")
    stranger = await group.max("POST", path, json={"admins": [{"user_id": 9, "permissions": []}]})
    unknown = await group.max("POST", path, json={"admins": [{"user_id": 5, "permissions": ["fly"]}]})

    assert appointed.body == {"success": True}
    assert listed[-1]["permissions"] == ["write", "pin_message"]
    assert [member["user_id"] for member in (await group.max("GET", path)).body["members"]] == [
        member["user_id"] for member in listed[:-1]
    ]
    assert (dismissed.body["success"], stranger.body["success"], unknown.status) == (True, False, 400)


async def test_a_chat_is_changed_and_tells_who_takes_part(group):
    mid = (await group.post("one", chat_id=GROUP)).body["message"]["body"]["mid"]

    changed = await group.max(
        "PATCH", f"/chats/{GROUP}", json={"title": "Family", "description": "Ours", "pin": mid, "notify": False}
    )
    long = await group.max("PATCH", f"/chats/{GROUP}", json={"title": "x" * 201})

    chat = (await group.max("GET", f"/chats/{GROUP}")).body
    assert changed.body == chat
    assert (chat["title"], chat["description"], chat["pinned_message"]["body"]["mid"]) == ("Family", "Ours", mid)
    assert (chat["owner_id"], list(chat["participants"])) == (777, ["777"])
    assert long.status == 400


async def test_a_bot_leaves_a_chat(group):
    left = await group.max("DELETE", f"/chats/{GROUP}/members/me")

    assert left.body == {"success": True}
    assert (await group.post(chat_id=GROUP)).status == 403


async def test_a_video_tells_where_it_can_be_watched(client):
    opened = (await client.max("POST", "/uploads?type=video")).body
    file = {"data": b"moving"}
    await client.ask("POST", opened["url"].removeprefix(client.base), data={"data": _named(file["data"])})

    video = await client.max("GET", f"/videos/{opened['token']}")
    unknown = await client.max("GET", "/videos/nothing")

    assert video.body["token"] == opened["token"]
    assert {"urls", "thumbnail", "width", "height", "duration"} <= set(video.body)
    async with client.session.get(video.body["urls"]["mp4_720"]) as response:
        assert await response.read() == b"moving"
    assert unknown.status == 404


def _named(content):

    file = io.BytesIO(content)
    file.name = "a.mp4"
    return file


async def test_an_empty_answer_to_a_button_is_refused(client):
    answers = [
        await client.max("POST", "/answers?callback_id=x", json=body)
        for body in ({}, {"message": None}, {"notification": ""})
    ]

    assert [answer.status for answer in answers] == [400, 400, 400]


async def test_messages_are_read_from_the_earlier_time_to_the_later(client, clock):
    times = []
    for text in ("one", "two", "three"):
        times.append((await client.post(text)).body["message"]["timestamp"])
        clock.advance(10)

    def texts(answer):
        return [message["body"]["text"] for message in answer.body["messages"]]

    path = f"/messages?chat_id={CHANNEL}"
    usual = await client.max("GET", f"{path}&from={times[0]}&to={times[1]}")
    documented = await client.max("GET", f"{path}&from={times[1]}&to={times[0]}")
    newer = await client.max("GET", f"{path}&after={times[1]}")

    assert texts(usual) == texts(documented) == ["two", "one"]
    assert texts(newer) == ["three", "two"]


async def test_an_empty_last_name_is_shown(client):
    await client.control("max/customers/9/start", {"first_name": "Ann", "last_name": ""})

    (update,) = (await client.max("GET", "/updates?timeout=0")).body["updates"]

    assert (update["user"]["last_name"], update["user"]["name"]) == ("", "Ann")
