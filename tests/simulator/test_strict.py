"""The strict profile, in which all tests run: what the platforms would ignore is refused by name."""

import pytest

CHANNEL = -1001000000001
MAX_CHANNEL = -7001
TOKEN = "1001:telegram-token"
BUTTON = {"text": "a", "url": "https://example.org/"}


def keyboard(**button):
    return {"inline_keyboard": [[BUTTON | button]]}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"preview": True}, "sendMessage has no parameter `preview`"),
        ({"disable_notification": "loud"}, "`disable_notification` must be bool, not 'loud'"),
        ({"message_thread_id": 1.5}, "`message_thread_id` must be int, not float"),
        ({"text": 5}, "`text` must be str, not int"),
        ({"protect_content": 1}, "`protect_content` must be bool, not int"),
        (
            {"link_preview_options": {"size": "large"}},
            "`link_preview_options`: Object contains unknown field `size`",
        ),
        (
            {"reply_markup": keyboard(colour="red")},
            "`reply_markup`: Object contains unknown field `colour` - at `$.inline_keyboard[0][0]`",
        ),
        (
            {"entities": [{"type": "bold", "offset": "0", "length": 1}]},
            "`entities`: Expected `int`, got `str` - at `$[0].offset`",
        ),
        ({"reply_parameters": {"message": 1}}, "`reply_parameters`: Object contains unknown field `message`"),
        (
            {"reply_parameters": {"chat_id": True, "allow_sending_without_reply": True}},
            "`reply_parameters`: Expected `int | str`, got `bool` - at `$.chat_id`",
        ),
    ],
)
async def test_telegram_refuses_what_it_would_ignore(client, lenient, params, reason):
    strictly = await client.send(**{"text": "hello", **params})

    assert strictly.status == 400
    assert strictly.body["description"] == f"Bad Request: strict profile of the simulator: {reason}"
    assert await client.shown() == []
    if "text" not in params and "entities" not in params:
        assert (await lenient.send(**params)).status == 200


async def test_numbers_and_flags_may_come_as_text_and_nothing_as_null(client):
    form = {
        "chat_id": str(CHANNEL),
        "text": "5",
        "disable_notification": "True",
        "message_thread_id": "7",
        "parse_mode": "",
    }

    by_form = await client.ask("POST", f"/bot{TOKEN}/sendMessage", data=form)
    by_json = await client.send(disable_notification="true", message_thread_id="7", reply_markup=None)

    assert (by_form.status, by_json.status) == (200, 200)


async def test_an_item_of_an_album_and_a_file_have_no_other_fields(client):
    item = {"type": "photo", "media": "x", "captoin": "typo"}

    answer = await client.telegram("sendMediaGroup", chat_id=CHANNEL, media=[item, item])

    assert "unknown field `captoin` - at `$[0]`" in answer.body["description"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"text": "a", "silent": True}, "Object contains unknown field `silent`"),
        ({"text": 5}, "Expected `str`, got `int` - at `$.text`"),
        (
            {"attachments": [{"type": "image", "payload": {"file": "x"}}]},
            "Object contains unknown field `file` - at `$.attachments[0].payload`",
        ),
        (
            {"attachments": [{"type": "inline_keyboard", "payload": {"buttons": [[{"type": "link", "href": "x"}]]}}]},
            "Object contains unknown field `href` - at `$.attachments[0].payload.buttons[0][0]`",
        ),
    ],
)
async def test_max_refuses_what_it_would_ignore(client, body, reason):
    answer = await client.max("POST", f"/messages?chat_id={MAX_CHANNEL}", json=body)

    assert answer.status == 400
    assert answer.body["message"] == f"strict profile of the simulator: {reason}"
    assert await client.shown("max", MAX_CHANNEL) == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (f"/messages?chat_id={MAX_CHANNEL}&preview=true", "POST /messages has no parameter `preview`"),
        (f"/messages?chat_id={MAX_CHANNEL}&disable_link_preview=maybe", "`disable_link_preview` must be bool"),
    ],
)
async def test_max_refuses_unknown_parameters(client, lenient, path, reason):
    strictly = await client.max("POST", path, json={"text": "hello"})
    leniently = await lenient.max("POST", path, json={"text": "hello"})

    assert (strictly.status, strictly.body["message"]) == (400, f"strict profile of the simulator: {reason}")
    assert leniently.status == 200
