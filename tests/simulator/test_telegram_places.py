"""Chats: topics, rights by kind of content, what a bot may still look at, and how it sees its own standing."""

import pytest
from harness.telegram_media import png, upload

TOKEN = "1001:telegram-token"
CHANNEL = -1001000000001
FORUM = -1002000000001
GROUP = -50
PERSON = 77
WORDS = {
    "text": "text messages",
    "photo": "photos",
    "video": "videos",
    "document": "documents",
    "audio": "music",
    "animation": "animations",
}


async def register(client, chat_id, type_, **state):
    spec = {"platform": "telegram", "id": chat_id, "type": type_, "limits": [], **state}
    return await client.control("chats", spec)


async def send(client, kind, chat_id, **params):
    if kind == "text":
        return await client.send(chat_id=chat_id, **params)
    return await upload(client, f"send{kind.capitalize()}", {kind: ("a.png", png())}, chat_id=chat_id, **params)


@pytest.fixture
async def forum(client):
    topics = [{"id": 7, "name": "Open"}, {"id": 8, "name": "Shut", "closed": True}]
    await register(client, FORUM, "supergroup", topics=topics)
    return client


@pytest.mark.parametrize("kind", ["text", "photo"])
@pytest.mark.parametrize(
    ("thread", "words"),
    [(7, None), (8, "TOPIC_CLOSED"), (9, "message thread not found"), (1, "message thread not found")],
)
async def test_a_message_goes_to_a_topic_that_is_there_and_open(forum, kind, thread, words):
    answer = await send(forum, kind, FORUM, message_thread_id=thread)

    assert answer.body.get("description") == (words and f"Bad Request: {words}")
    if words is None:
        message = answer.body["result"]
        assert (message["message_thread_id"], message["is_topic_message"], message["chat"]["is_forum"]) == (
            7,
            True,
            True,
        )


async def test_without_a_topic_a_message_goes_to_general(forum):
    answer = await forum.send(chat_id=FORUM)

    assert "message_thread_id" not in answer.body["result"]


async def test_outside_a_forum_the_topic_is_ignored(client):
    answer = await client.send(message_thread_id=99)

    assert (answer.status, "message_thread_id" in answer.body["result"]) == (200, False)


@pytest.mark.parametrize("kind", WORDS)
async def test_what_a_chat_forbids_is_named_by_its_kind(client, kind):
    await register(client, GROUP, "group", forbids=[kind])

    refused = await send(client, kind, GROUP)
    other = await send(client, "photo" if kind == "text" else "text", GROUP)

    assert refused.body["description"] == f"Bad Request: not enough rights to send {WORDS[kind]} to the chat"
    assert other.status == 200


async def test_an_album_needs_the_right_for_each_of_its_kinds(client):
    await register(client, GROUP, "group", forbids=["video"])
    media = [{"type": "photo", "media": "attach://a"}, {"type": "video", "media": "attach://b"}]
    files = {"a": ("a.png", png()), "b": ("b.mp4", b"clip")}

    answer = await upload(client, "sendMediaGroup", files, chat_id=GROUP, media=media)

    assert answer.body["description"] == "Bad Request: not enough rights to send videos to the chat"
    assert await client.shown(chat_id=GROUP) == []


async def test_a_channel_takes_posts_of_administrators_only(client):
    await register(client, CHANNEL, "channel", role="member")

    answer = await client.send()

    assert answer.body["description"] == "Bad Request: need administrator rights in the channel chat"


@pytest.mark.parametrize(
    ("chat_id", "type_", "state", "status"),
    [
        (GROUP, "group", {"state": "kicked"}, 200),
        (GROUP, "group", {"state": "not_member"}, 200),
        (GROUP, "group", {"state": "deleted"}, 200),
        (GROUP, "group", {"migrated_to": FORUM}, 200),
        (FORUM, "supergroup", {"state": "kicked"}, 403),
        (FORUM, "supergroup", {"state": "not_member"}, 403),
        (FORUM, "supergroup", {"state": "not_member", "username": "public"}, 200),
        (PERSON, "private", {"state": "blocked"}, 200),
        (PERSON, "private", {"state": "deleted"}, 200),
        (PERSON, "private", {"state": "unknown"}, 400),
    ],
)
async def test_looking_at_a_chat_needs_less_than_writing_to_it(client, chat_id, type_, state, status):
    await register(client, chat_id, type_, **state)

    seen = await client.telegram("getChat", chat_id=chat_id)
    written = await client.send(chat_id=chat_id)

    assert seen.status == status
    assert written.status in (400, 403)


async def test_a_group_that_moved_can_still_be_tidied(client):
    await register(client, GROUP, "group")
    await client.send(chat_id=GROUP)
    await register(client, GROUP, "group", migrated_to=FORUM)

    assert (await client.telegram("deleteMessage", chat_id=GROUP, message_id=1)).status == 200


@pytest.mark.parametrize(
    ("chat_id", "type_", "state", "standing"),
    [
        (CHANNEL, "channel", {}, {"status": "administrator", "can_post_messages": True}),
        (CHANNEL, "channel", {"state": "no_rights"}, {"status": "administrator", "can_post_messages": False}),
        (CHANNEL, "channel", {"role": "member"}, {"status": "member"}),
        (FORUM, "supergroup", {}, {"status": "member"}),
        (FORUM, "supergroup", {"role": "administrator"}, {"status": "administrator", "can_delete_messages": True}),
        (
            FORUM,
            "supergroup",
            {"forbids": ["photo"]},
            {"status": "restricted", "can_send_photos": False, "can_send_messages": True},
        ),
        (GROUP, "group", {"state": "kicked"}, {"status": "kicked"}),
        (GROUP, "group", {"state": "not_member"}, {"status": "left"}),
    ],
)
async def test_a_bot_sees_how_it_stands(client, chat_id, type_, state, standing):
    await register(client, chat_id, type_, **state)

    member = (await client.telegram("getChatMember", chat_id=chat_id, user_id=1001)).body["result"]

    assert member | standing == member
    assert member["user"]["id"] == 1001


@pytest.mark.parametrize(
    ("user_id", "words"),
    [(None, "invalid user_id specified"), (-5, "invalid user_id specified"), (5, "PARTICIPANT_ID_INVALID")],
)
async def test_somebody_unknown_is_no_member(client, user_id, words):
    answer = await client.telegram("getChatMember", chat_id=CHANNEL, user_id=user_id)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")


async def test_somebody_who_has_a_chat_is_a_member(client):
    await register(client, PERSON, "private", title="Ann")

    member = (await client.telegram("getChatMember", chat_id=CHANNEL, user_id=PERSON)).body["result"]

    assert (member["status"], member["user"]["first_name"]) == ("member", "Ann")


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"id": CHANNEL, "topics": []}, "topics"),
        ({"id": CHANNEL, "migrated_to": FORUM}, "migrated_to"),
        ({"id": CHANNEL, "state": "deleted"}, "state"),
        ({"id": CHANNEL, "state": "not_started"}, "state"),
        ({"id": PERSON, "state": "read_only"}, "state"),
        ({"id": FORUM, "type": "supergroup", "topics": [{"id": 1}]}, "topic"),
        ({"platform": "max", "id": -9, "role": "member"}, "role"),
        ({"platform": "max", "id": -9, "state": "unknown"}, "state"),
    ],
)
async def test_a_chat_that_cannot_be_is_refused_with_the_field(client, spec, names):
    answer = await client.control("chats", {"platform": "telegram", **spec})

    assert (answer.status, names in answer.body["error"]) == (400, True)


@pytest.mark.parametrize("kind", WORDS)
async def test_options_that_any_message_can_have(client, kind):
    await client.send("question")
    params = {"reply_parameters": {"message_id": 1}, "protect_content": True, "disable_notification": True}

    message = (await send(client, kind, CHANNEL, **params)).body["result"]

    assert (message["reply_to_message"]["text"], message["has_protected_content"]) == ("question", True)


async def test_options_that_only_visible_media_has(lenient):
    shown = {"has_spoiler": True, "show_caption_above_media": True}

    photo = (await send(lenient, "photo", CHANNEL, **shown)).body["result"]
    document = (await send(lenient, "document", CHANNEL, **shown)).body["result"]

    assert (photo["has_media_spoiler"], photo["show_caption_above_media"]) == (True, True)
    assert not {"has_media_spoiler", "show_caption_above_media"} & set(document)


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"link_preview_options": {"is_disabled": True}}, {"is_disabled": True}),
        ({"link_preview_options": {"show_above_text": True}}, {"show_above_text": True}),
        ({"disable_web_page_preview": True}, {"is_disabled": True}),
        (
            {"disable_web_page_preview": True, "link_preview_options": {"show_above_text": True}},
            {"show_above_text": True},
        ),
        (
            {"link_preview_options": {"prefer_small_media": True, "url": "https://example.org/a"}},
            {"prefer_small_media": True, "url": "https://example.org/a"},
        ),
        (
            {"link_preview_options": {"is_disabled": True, "prefer_large_media": True, "url": "https://example.org/a"}},
            {"is_disabled": True},
        ),
    ],
)
async def test_the_preview_of_a_link_is_as_it_was_asked_for(client, params, shown):
    assert (await client.send("https://example.org", **params)).body["result"]["link_preview_options"] == shown


@pytest.mark.parametrize("size", ["prefer_small_media", "prefer_large_media"])
async def test_the_size_of_a_preview_is_ignored_without_its_address(client, size):
    answer = await client.send("https://example.org", link_preview_options={size: True})

    assert "link_preview_options" not in answer.body["result"]


@pytest.mark.parametrize(("text", "status"), [("", 400), ("\u200b", 200)])
async def test_with_the_address_of_a_preview_the_text_may_be_invisible(client, text, status):
    address = {"url": "https://example.org/a"}

    assert (await client.send(text, link_preview_options=address)).status == status


@pytest.mark.parametrize("kind", ["photo", "video", "document", "audio", "animation"])
async def test_a_caption_has_1024_code_points_after_parsing(client, kind):
    smileys = "😀" * 1024

    fits = await send(client, kind, CHANNEL, caption=f"<b>{smileys}</b>", parse_mode="HTML")
    too_long = await send(client, kind, CHANNEL, caption=f"<b>{smileys}x</b>", parse_mode="HTML")

    assert fits.body["result"]["caption"] == smileys
    assert fits.body["result"]["caption_entities"] == [{"type": "bold", "offset": 0, "length": 2048}]
    assert too_long.body["description"] == "Bad Request: message caption is too long"
