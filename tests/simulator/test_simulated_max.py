"""The MAX API as a client sees it: what it accepts, what it shows, how it says no."""

import pytest
from autopost_simulator.max.text.markdown import parse_markdown
from autopost_simulator.max.text.markup import parse_html

CHANNEL = -7001


async def test_a_channel_post_looks_like_a_max_message(client):
    answer = await client.post("<b>bold</b> text", format="html")

    message = answer.body["message"]
    body = message["body"]
    assert answer.status == 200
    assert message["recipient"] == {"chat_id": CHANNEL, "chat_type": "channel"}
    assert message["timestamp"] == 1772323200000
    assert (body["text"], body["markup"]) == ("bold text", [{"type": "strong", "from": 0, "length": 4}])
    assert body["mid"] == f"mid.{CHANNEL % 2**64:016x}{body['seq']:016x}"
    assert "url" in message
    assert "sender" not in message


async def test_in_a_dialog_the_bot_is_the_sender_and_the_person_the_recipient(client):
    await client.control("chats", {"platform": "max", "id": 500, "type": "dialog", "user_id": 9})

    message = (await client.max("POST", "/messages?user_id=9", json={"text": "hello"})).body["message"]

    assert message["recipient"] == {"chat_id": 500, "chat_type": "dialog", "user_id": 9}
    assert message["sender"]["is_bot"] is True


async def test_messages_are_read_back_by_chat_by_list_and_one_by_one(client):
    mids = [(await client.post(text)).body["message"]["body"]["mid"] for text in ("one", "two", "three")]

    by_chat = await client.max("GET", f"/messages?chat_id={CHANNEL}&count=2")
    by_list = await client.max("GET", f"/messages?message_ids={mids[0]},mid.unknown,{mids[2]}")
    one = await client.max("GET", f"/messages/{mids[1]}")
    none = await client.max("GET", "/messages/mid.unknown")

    assert [message["body"]["text"] for message in by_chat.body["messages"]] == ["three", "two"]
    assert [message["body"]["text"] for message in by_list.body["messages"]] == ["one", "three"]
    assert one.body["body"]["text"] == "two"
    assert none.status == 404


async def test_deleting_twice_fails_with_status_200(client):
    mid = (await client.post()).body["message"]["body"]["mid"]

    first = await client.max("DELETE", f"/messages?message_id={mid}")
    second = await client.max("DELETE", f"/messages?message_id={mid}")

    assert first.body == {"success": True}
    assert (second.status, second.body["success"]) == (200, False)
    assert [entry["verdict"] for entry in await client.log("?method=DELETE%20/messages")] == ["accepted", "refused"]


async def test_me_chat_and_membership_have_the_fields_clients_need(client):
    me = (await client.max("GET", "/me")).body
    chat = (await client.max("GET", f"/chats/{CHANNEL}")).body
    member = (await client.max("GET", f"/chats/{CHANNEL}/members/me")).body

    assert set(me) >= {"user_id", "first_name", "username", "is_bot", "last_activity_time", "name"}
    assert (chat["chat_id"], chat["type"], chat["status"], chat["title"]) == (CHANNEL, "channel", "active", "News")
    assert member["is_admin"] is True
    assert "write" in member["permissions"]


async def test_a_reply_links_the_message_it_answers(client):
    mid = (await client.post("question")).body["message"]["body"]["mid"]

    answer = await client.post("answer", link={"type": "reply", "mid": mid})

    assert answer.body["message"]["link"]["message"]["text"] == "question"


@pytest.mark.parametrize(
    "credentials",
    [
        {},
        {"headers": {"Authorization": "somebody-else"}},
        {"headers": {"Authorization": "Bearer max-token"}},
        {"params": {"access_token": "max-token"}},
    ],
)
async def test_only_the_bare_token_in_the_header_counts(client, credentials):
    answer = await client.ask("GET", "/max/me", **credentials)

    assert (answer.status, answer.body) == (401, {"code": "verify.token", "message": "Invalid access_token"})


async def test_an_open_simulator_still_refuses_a_bearer_prefix(start):
    client = await start(open_to_all=True)

    assert (await client.max("GET", "/me", token="Bearer anything")).status == 401
    assert (await client.max("GET", "/me", token="anything")).status == 200


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        ("kicked", 403, "chat.denied"),
        ("not_member", 403, "chat.denied"),
        ("blocked", 403, "chat.denied"),
        ("no_rights", 403, "chat.denied"),
        ("not_found", 404, "chat.not.found"),
    ],
)
async def test_the_state_of_a_chat_decides_how_a_post_is_refused(client, state, status, code):
    await client.control("chats", {"platform": "max", "id": CHANNEL, "state": state})

    answer = await client.post()

    assert (answer.status, answer.body["code"]) == (status, code)
    assert await client.shown("max", CHANNEL) == []


async def test_without_rights_the_membership_shows_it(client):
    await client.control("chats", {"platform": "max", "id": CHANNEL, "state": "no_rights"})

    member = (await client.max("GET", f"/chats/{CHANNEL}/members/me")).body

    assert member["is_admin"] is False
    assert "permissions" not in member


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/messages?chat_id=-404", {"text": "x"}, 404, "chat.not.found"),
        ("/messages?chat_id=404", {"text": "x"}, 404, "dialog.not.found"),
        ("/messages?user_id=404", {"text": "x"}, 404, "chat.not.found"),
        ("/messages", {"text": "x"}, 400, "proto.payload"),
        (f"/messages?chat_id={CHANNEL}", {}, 400, "proto.payload"),
        (f"/messages?chat_id={CHANNEL}", {"text": 5}, 400, "proto.payload"),
        (f"/messages?chat_id={CHANNEL}", {"text": "x", "format": "bbcode"}, 400, "proto.payload"),
        (f"/messages?chat_id={CHANNEL}", {"text": "x", "notify": False}, 400, "proto.payload"),
        (f"/messages?chat_id={CHANNEL}", {"attachments": [{"type": "image"}]}, 400, "proto.payload"),
        (
            f"/messages?chat_id={CHANNEL}",
            {"text": "x", "link": {"type": "reply", "mid": "?"}},
            404,
            "message.not.found",
        ),
    ],
)
async def test_a_wrong_request_is_refused(client, path, body, status, code):
    answer = await client.max("POST", path, json=body)

    assert (answer.status, answer.body["code"]) == (status, code)
    assert await client.shown("max", CHANNEL) == []


async def test_four_thousand_characters_fit_and_one_more_does_not(client):
    fits = await client.post("a" * 4000)
    over = await client.post("a" * 4001)

    assert fits.status == 200
    assert over.body == {"code": "proto.payload", "message": "text: size must be between 0 and 4000"}


async def test_an_unknown_path_and_a_wrong_verb_are_told_apart(client):
    assert (await client.max("GET", "/nothing")).status == 404
    assert (await client.max("PUT", "/me")).status == 405


def keyboard(*rows):
    return [{"type": "inline_keyboard", "payload": {"buttons": list(rows)}}]


CALLBACK = {"type": "callback", "text": "a", "payload": "p"}
LINK = {"type": "link", "text": "a", "url": "https://example.org"}


async def test_buttons_come_back_with_the_message(client):
    answer = await client.post(attachments=keyboard([LINK], [CALLBACK]))

    (shown,) = answer.body["message"]["body"]["attachments"]
    assert len(shown.pop("callback_id")) == 64
    assert [shown] == keyboard([LINK], [{"intent": "default", **CALLBACK}])


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[]],
        [[CALLBACK] * 8],
        [[LINK] * 4],
        [[CALLBACK]] * 31,
        [[{"type": "callback", "text": "", "payload": "p"}]],
        [[{"type": "callback", "text": "a" * 129, "payload": "p"}]],
        [[{"type": "callback", "text": "a", "payload": "p" * 1025}]],
        [[{"type": "link", "text": "a"}]],
        [[{"type": "doorbell", "text": "a"}]],
    ],
)
async def test_a_keyboard_beyond_the_limits_is_refused(client, rows):
    answer = await client.post(attachments=keyboard(*rows))

    assert (answer.status, answer.body["code"]) == (400, "proto.payload")


@pytest.mark.parametrize(
    ("html", "text", "kinds"),
    [
        ("<p>one</p><br>two", "onetwo", []),
        ("<b>a</b> <i>b</i> <u>c</u> <s>d</s>", "a b c d", ["strong", "emphasized", "underline", "strikethrough"]),
        ("<mark>a</mark><h1>b</h1><code>c</code>", "abc", ["highlighted", "heading", "monospaced"]),
        ("<b>never closed", "never closed", []),
        ("1 &lt; 2 &amp; &nbsp;3", "1 < 2 & \xa03", []),
    ],
)
def test_html_is_stripped_of_what_max_does_not_know(html, text, kinds):
    parsed = parse_html(html)

    assert (parsed.text, [element["type"] for element in parsed.markup]) == (text, kinds)


@pytest.mark.parametrize(
    ("markdown", "text", "kinds"),
    [
        ("*i* _i_ **b** __b__", "i i b b", ["emphasized", "emphasized", "strong", "strong"]),
        ("~~s~~ ++u++ ^^h^^ `c`", "s u h c", ["strikethrough", "underline", "highlighted", "monospaced"]),
        ("# head\n> quote\nplain", "head\nquote\nplain", ["heading", "quote"]),
        ("[x](https://example.org) [Ann](max://user/5)", "x Ann", ["link", "user_mention"]),
        ("```\na\nb\n```", "a\nb", ["monospaced"]),
        ("2 * 3 and snake_case*", "2 * 3 and snake_case*", []),
        ("*a **b** c*", "a b c", ["emphasized", "strong"]),
        ("*a «**−50%**» b*", "a «−50%» b", ["emphasized", "strong"]),
        ("***a:** b*", "a: b", ["emphasized", "strong"]),
        ("*a**b***", "ab", ["emphasized", "strong"]),
        ("`` a`b `` *c\nd*", "a`b c\nd", ["monospaced", "emphasized"]),
        ("#tag ##no", "#tag ##no", []),
        ('[a](<http://e.com/x y> "title") <http://e.com/>', "a http://e.com/", ["link", "link"]),
        ("[a](http://e.com/(b)) [c] \\*d*", "a [c] *d*", ["link"]),
        ("~~~\n  a\n~~~", "  a", ["monospaced"]),
        ("a ~~~~ ++++ b", "a ~~~~ ++++ b", []),
    ],
)
def test_markdown_becomes_text_and_markup(markdown, text, kinds):
    parsed = parse_markdown(markdown)

    assert (parsed.text, [element["type"] for element in parsed.markup]) == (text, kinds)


async def test_an_edit_replaces_what_it_names_and_keeps_the_rest(client):
    mid = (await client.post("<b>old</b>", format="html", attachments=keyboard([LINK]))).body["message"]["body"]["mid"]

    only_text = await client.max("PUT", f"/messages?message_id={mid}", json={"text": "new"})
    after_text = (await client.max("GET", f"/messages/{mid}")).body["body"]
    only_buttons = await client.max("PUT", f"/messages?message_id={mid}", json={"attachments": []})
    after_buttons = (await client.max("GET", f"/messages/{mid}")).body["body"]

    assert (only_text.body, only_buttons.body) == ({"success": True}, {"success": True})
    assert after_text["text"] == "new"
    assert [one["payload"] for one in after_text["attachments"]] == [one["payload"] for one in keyboard([LINK])]
    assert "markup" not in after_text
    assert (after_buttons["text"], "attachments" in after_buttons) == ("new", False)


async def test_an_edit_that_leaves_nothing_is_refused(client):
    mid = (await client.post("old")).body["message"]["body"]["mid"]

    answer = await client.max("PUT", f"/messages?message_id={mid}", json={"text": ""})

    assert (answer.status, await client.shown("max", CHANNEL)) == (400, ["old"])


@pytest.mark.parametrize(
    ("chat_id", "attachments", "days", "success"),
    [(500, [], 6.9, True), (500, [], 7, False), (500, keyboard([CALLBACK]), 30, True), (CHANNEL, [], 30, True)],
)
async def test_in_a_dialog_only_buttons_keep_a_message_editable(client, clock, chat_id, attachments, days, success):
    await client.control("chats", {"platform": "max", "id": 500, "type": "dialog", "limits": []})
    mid = (await client.post("old", chat_id, attachments=attachments)).body["message"]["body"]["mid"]
    clock.advance(days * 24 * 60 * 60)

    answer = await client.max("PUT", f"/messages?message_id={mid}", json={"text": "new"})

    assert (answer.status, answer.body["success"]) == (200, success)


async def test_editing_what_is_not_there_fails_with_status_200(client):
    answer = await client.max("PUT", "/messages?message_id=mid.none", json={"text": "new"})

    assert (answer.status, answer.body) == (200, {"success": False, "message": "Message not found"})


async def test_messages_of_a_span_of_time_are_read_back(client, clock):
    start = 1772323200000
    for text in ("one", "two", "three", "four"):
        await client.post(text)
        clock.advance(1)

    async def read(query):
        answer = await client.max("GET", f"/messages?chat_id={CHANNEL}&{query}")
        return [message["body"]["text"] for message in answer.body["messages"]]

    assert await read(f"from={start + 2000}&to={start + 1000}") == ["three", "two"]
    assert await read(f"before={start + 2000}&after={start + 1000}") == ["three", "two"]
    assert await read(f"after={start + 2000}&count=1") == ["four"]


async def test_views_are_told_to_those_who_read_a_channel_post(client):
    sent = (await client.post()).body["message"]

    read = (await client.max("GET", f"/messages/{sent['body']['mid']}")).body

    assert ("stat" in sent, read["stat"]["views"]) == (False, 1)


async def test_a_forwarded_message_leaves_its_buttons_behind(client):
    mid = (await client.post("old", attachments=keyboard([LINK]))).body["message"]["body"]["mid"]

    answer = await client.max("POST", f"/messages?chat_id={CHANNEL}", json={"link": {"type": "forward", "mid": mid}})

    link = answer.body["message"]["link"]
    assert (link["type"], link["chat_id"], link["message"]["text"]) == ("forward", CHANNEL, "old")
    assert "attachments" not in link["message"]


async def test_a_bot_shows_that_it_is_typing(client):
    typing = await client.max("POST", f"/chats/{CHANNEL}/actions", json={"action": "typing_on"})
    dancing = await client.max("POST", f"/chats/{CHANNEL}/actions", json={"action": "dancing"})

    assert (typing.body, dancing.status) == ({"success": True}, 400)


async def test_two_keyboards_are_one_too_many(client):
    assert (await client.post(attachments=keyboard([LINK]) * 2)).status == 400
