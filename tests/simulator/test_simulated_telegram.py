"""The Bot API as a client sees it: what it accepts, what it shows, how it says no."""

import aiohttp
import msgspec
import pytest
from harness.telegram_media import upload

TOKEN = "1001:telegram-token"
CHANNEL = -1001000000001


async def test_a_channel_post_looks_like_a_telegram_message(client):
    answer = await client.send("<b>bold</b> text", parse_mode="HTML")

    assert (answer.status, answer.body["ok"]) == (200, True)
    chat = {"id": CHANNEL, "type": "channel", "title": "News"}
    assert answer.body["result"] == {
        "message_id": 1,
        "date": 1772323200,
        "chat": chat,
        "sender_chat": chat,
        "text": "bold text",
        "entities": [{"type": "bold", "offset": 0, "length": 4}],
    }


async def test_in_a_group_the_bot_itself_is_the_sender(client):
    await client.control("chats", {"platform": "telegram", "id": -5, "type": "group"})

    message = (await client.send(chat_id=-5)).body["result"]

    assert message["from"] == {
        "id": 1001,
        "is_bot": True,
        "first_name": message["from"]["first_name"],
        "username": message["from"]["username"],
    }
    assert "sender_chat" not in message


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT"])
@pytest.mark.parametrize("name", ["sendMessage", "SENDMESSAGE", "sendmessage"])
async def test_any_verb_and_any_case_of_the_method_will_do(client, verb, name):
    answer = await client.ask(verb, f"/bot{TOKEN}/{name}", params={"chat_id": CHANNEL, "text": "hello"})

    assert answer.body["result"]["text"] == "hello"
    assert [entry["method"] for entry in await client.log()] == ["sendMessage"]


async def test_parameters_come_by_query_form_json_and_multipart_alike(client):
    keyboard = {"inline_keyboard": [[{"text": "Open", "url": "https://example.org/a"}]]}
    form = {"chat_id": str(CHANNEL), "text": "same", "reply_markup": msgspec.json.encode(keyboard).decode()}
    multipart = aiohttp.FormData(default_to_multipart=True)
    for name, value in form.items():
        multipart.add_field(name, value)

    path = f"/bot{TOKEN}/sendMessage"
    answers = [
        await client.ask("GET", path, params=form),
        await client.ask("POST", path, data=form),
        await client.ask("POST", path, data=multipart),
        await client.ask("POST", path, json={"chat_id": CHANNEL, "text": "same", "reply_markup": keyboard}),
    ]

    assert [answer.body["result"]["text"] for answer in answers] == ["same"] * 4
    assert [answer.body["result"]["reply_markup"] for answer in answers] == [keyboard] * 4


@pytest.mark.parametrize("body", [b"null\n", b"[]", b"{", b"text"])
async def test_a_body_that_is_no_json_object_has_no_fields(client, body):
    """telebot sends ``null`` where a method has none."""
    options = {"data": body, "headers": {"Content-Type": "application/json"}}

    me = await client.ask("POST", f"/bot{TOKEN}/getMe", **options)
    sent = await client.ask("POST", f"/bot{TOKEN}/sendMessage", **options)

    assert (me.status, sent.status) == (200, 400)
    assert sent.body["description"] == "Bad Request: message text is empty"


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT"])
async def test_a_multipart_body_is_read_whatever_the_verb(client, verb):
    form = aiohttp.FormData({"chat_id": str(CHANNEL), "text": "привет"}, default_to_multipart=True)

    answer = await client.ask(verb, f"/bot{TOKEN}/sendMessage", data=form)

    assert answer.body["result"]["text"] == "привет"


async def test_a_multipart_body_without_its_boundary_is_refused(client):
    headers = {"Content-Type": "multipart/form-data"}

    answer = await client.ask("POST", f"/bot{TOKEN}/sendMessage", data=b"--x", headers=headers)

    assert (answer.status, answer.body["description"]) == (400, "Bad Request: boundary not found")


async def test_equal_uploads_have_equal_digests_and_other_bytes_another(client):
    for content in (b"one", b"one", b"two"):
        await upload(client, "sendDocument", {"document": ("a.txt", content)}, chat_id=CHANNEL)

    first, second, third = [entry["body_sha256"] for entry in await client.log()]
    assert first == second != third


async def test_get_me_and_get_chat_describe_the_registered_ones(client):
    await client.control("tokens", {"platform": "telegram", "token": TOKEN, "name": "Herald", "username": "herald_bot"})
    await client.control("chats", {"platform": "telegram", "id": CHANNEL, "username": "news"})

    me = (await client.telegram("getMe")).body["result"]
    chat = (await client.telegram("getChat", chat_id="@News")).body["result"]

    assert (me["id"], me["first_name"], me["username"], me["is_bot"]) == (1001, "Herald", "herald_bot", True)
    assert (chat["id"], chat["title"], chat["username"], chat["type"]) == (CHANNEL, "News", "news", "channel")
    assert set(chat) >= {"accent_color_id", "max_reaction_count", "accepted_gift_types"}


async def test_a_deleted_message_is_gone_and_cannot_be_deleted_again(client):
    message_id = (await client.send("soon gone")).body["result"]["message_id"]
    await client.send("stays")

    first = await client.telegram("deleteMessage", chat_id=CHANNEL, message_id=message_id)
    second = await client.telegram("deleteMessage", chat_id=CHANNEL, message_id=message_id)

    assert first.body == {"ok": True, "result": True}
    assert second.body["description"] == "Bad Request: message to delete not found"
    assert await client.shown() == ["stays"]


async def test_a_reply_carries_the_message_it_answers(client):
    first = (await client.send("question")).body["result"]

    reply = await client.send("answer", reply_parameters={"message_id": first["message_id"]})
    lost = await client.send("answer", reply_parameters={"message_id": 99})

    assert reply.body["result"]["reply_to_message"]["text"] == "question"
    assert lost.body["description"] == "Bad Request: message to be replied not found"


async def test_a_reply_to_a_reply_shows_one_step_back(client):
    await client.send("first")
    await client.send("second", reply_parameters={"message_id": 1})

    answer = await client.send("third", reply_parameters={"message_id": 2})

    shown = answer.body["result"]["reply_to_message"]
    assert shown["text"] == "second"
    assert "reply_to_message" not in shown


@pytest.mark.parametrize(
    ("token", "status", "description"),
    [
        ("1001:somebody-else", 401, "Unauthorized"),
        ("1001", 404, "Not Found"),
        ("bot:word", 404, "Not Found"),
        ("", 404, "Not Found"),
    ],
)
async def test_a_dead_token_is_unauthorized_and_a_malformed_one_not_found(client, token, status, description):
    answer = await client.telegram("getMe", token=token)

    assert (answer.status, answer.body) == (status, {"ok": False, "error_code": status, "description": description})


async def test_a_revoked_token_is_unauthorized(client):
    await client.control("tokens", {"platform": "telegram", "token": TOKEN, "state": "revoked"})

    assert (await client.send()).status == 401


async def test_an_unknown_method_is_not_found(client):
    answer = await client.telegram("sendTelegraph")

    assert (answer.status, answer.body["description"]) == (404, "Not Found: method not found")


@pytest.mark.parametrize(
    ("chat", "state", "status", "description"),
    [
        (CHANNEL, "kicked", 403, "Forbidden: bot was kicked from the channel chat"),
        (CHANNEL, "not_member", 403, "Forbidden: bot is not a member of the channel chat"),
        (CHANNEL, "no_rights", 400, "Bad Request: need administrator rights in the channel chat"),
        (CHANNEL, "not_found", 400, "Bad Request: chat not found"),
        (-5, "kicked", 403, "Forbidden: bot was kicked from the group chat"),
        (-5, "no_rights", 400, "Bad Request: not enough rights to send text messages to the chat"),
        (77, "blocked", 403, "Forbidden: bot was blocked by the user"),
    ],
)
async def test_the_state_of_a_chat_decides_how_a_post_is_refused(client, chat, state, status, description):
    await client.control("chats", {"platform": "telegram", "id": chat, "state": state})

    answer = await client.send(chat_id=chat)

    assert (answer.status, answer.body["error_code"], answer.body["description"]) == (status, status, description)
    assert await client.shown(chat_id=chat) == []


@pytest.mark.parametrize(
    ("params", "description"),
    [
        ({"chat_id": -1009999}, "chat not found"),
        ({"chat_id": "@nobody"}, "chat not found"),
        ({"chat_id": "words"}, "chat not found"),
        ({"chat_id": ""}, "chat_id is empty"),
        ({"text": ""}, "message text is empty"),
        ({"text": " \n "}, "text must be non-empty"),
        ({"text": "\u200b"}, "text must be non-empty"),
        ({"text": "<b></b>", "parse_mode": "HTML"}, "text must be non-empty"),
        ({"text": "a" * 4097}, "message is too long"),
        ({"text": "я" * 16385}, "text is too long"),
        ({"parse_mode": "BBCode"}, "unsupported parse_mode"),
    ],
)
async def test_a_wrong_request_is_refused_in_telegrams_words(client, params, description):
    answer = await client.send(**{"text": "hello", **params})

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {description}")


async def test_length_is_counted_in_code_points_after_parsing(client):
    smileys = "😀" * 4096

    answer = await client.send(f"<b>{smileys}</b>", parse_mode="HTML")

    assert answer.body["result"]["text"] == smileys
    assert answer.body["result"]["entities"] == [{"type": "bold", "offset": 0, "length": 8192}]


UNALLOWED = "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
WRONG_PORT = "Wrong port number specified in the URL"


def wrong_url(url, reason):
    return f"inline keyboard button URL '{url}' is invalid: {reason}"


@pytest.mark.parametrize(
    ("button", "description"),
    [
        ({"text": "a", "callback_data": "x" * 65}, "BUTTON_DATA_INVALID"),
        ({"text": "a", "callback_data": "ы" * 33}, "BUTTON_DATA_INVALID"),
        ({"text": "a", "callback_data": ""}, UNALLOWED),
        ({"text": "a", "url": "not an address"}, wrong_url("not an address", "Disallowed character in URL host")),
        ({"text": "a", "url": "javascript://x.y"}, wrong_url("javascript://x.y", "Unsupported URL protocol")),
        ({"text": "a", "url": "https://e.com:99999"}, wrong_url("https://e.com:99999", WRONG_PORT)),
        ({"text": "", "url": "https://e.com"}, "inline keyboard button text must be non-empty"),
        ({"text": "a"}, UNALLOWED),
        ({"url": "https://e.com"}, "can't parse inline keyboard button: Can't find field \"text\""),
    ],
)
async def test_a_button_telegram_would_not_take_is_refused(client, button, description):
    answer = await client.send(reply_markup={"inline_keyboard": [[button]]})

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {description}")


async def test_callback_data_of_64_bytes_just_fits(client):
    answer = await client.send(reply_markup={"inline_keyboard": [[{"text": "a", "callback_data": "ы" * 32}]]})

    assert answer.status == 200


async def test_an_open_simulator_takes_any_token_and_chat_but_no_malformed_token(start):
    client = await start(open_to_all=True)

    assert (await client.send("hello", chat_id=-1005)).status == 200
    assert (await client.send("hello", chat_id="@somewhere")).body["result"]["chat"]["username"] == "somewhere"
    assert (await client.telegram("getMe", token="malformed")).status == 404
