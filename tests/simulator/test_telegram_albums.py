"""sendMediaGroup: what may stand together, what becomes of captions and buttons, and that it is all or nothing."""

import pytest
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.sending.album import refuse_album
from harness.telegram_media import png, sent_file, upload

CHANNEL = -1001000000001
DOCUMENTS_APART = "Bad Request: document can't be mixed with other media types"
AUDIO_APART = "Bad Request: audio can't be mixed with other media types"


async def send_album(client, *items, **params):
    """Every item gets a picture of its own."""
    media = [{"media": f"attach://part{number}", **item} for number, item in enumerate(items)]
    files = {f"part{number}": ("a.png", png(shade=number)) for number in range(len(items))}
    return await upload(client, "sendMediaGroup", files, chat_id=CHANNEL, media=media, **params)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["photo"], None),
        (["photo", "photo"], None),
        (["photo", "video"], None),
        (["video", "photo", "video"], None),
        (["document", "document"], None),
        (["audio", "audio"], None),
        (["photo"] * 10, None),
        (["photo"] * 11, "Bad Request: too many messages to send as an album"),
        ([], "Bad Request: there are no messages to send"),
        (["photo", "document"], DOCUMENTS_APART),
        (["document", "video"], DOCUMENTS_APART),
        (["audio", "photo"], AUDIO_APART),
        (["video", "audio"], AUDIO_APART),
        (["document", "audio"], DOCUMENTS_APART),
        (["audio", "document"], AUDIO_APART),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_photos_and_videos_mix_and_the_others_stay_among_themselves(kinds, words):
    refusal = None
    try:
        refuse_album(kinds, [False] * len(kinds))
    except TelegramError as refused:
        refusal = refused.description

    assert refusal == words


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"type": "animation"}, "can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup"),
        ({"type": "sticker"}, 'can\'t parse InputMedia: type "sticker" is unsupported'),
        ({"type": "photo", "media": ""}, "can't parse InputMedia: media not found"),
        ({"type": "photo", "media": "attach://nowhere"}, "can't parse InputMedia: media not found"),
        (
            {"type": "photo", "caption": "<p>", "parse_mode": "HTML"},
            "can't parse InputMedia: Can't parse entities: Unsupported start tag \"p\" at byte offset 0",
        ),
        ({"type": "photo", "caption": "я" * 1025}, "message caption is too long"),
    ],
)
async def test_one_wrong_item_refuses_the_whole_album(client, item, words):
    answer = await send_album(client, {"type": "photo"}, item)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")
    assert await client.shown() == []


@pytest.mark.parametrize(
    ("media", "words"),
    [
        ("", 'parameter "media" is required'),
        ("[", "can't parse media JSON object"),
        ("{}", "expected an Array of InputMedia"),
        ('["photo"]', "can't parse InputMedia: expected an Object"),
    ],
)
async def test_media_must_be_a_list_of_objects(client, media, words):
    answer = await client.telegram("sendMediaGroup", chat_id=CHANNEL, media=media)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")


async def test_an_item_its_server_refuses_is_named_by_number_and_code(client):
    media = [{"type": "photo", "media": "attach://good"}, {"type": "photo", "media": "attach://bad"}]
    files = {"good": ("a.png", png()), "bad": ("b.png", b"no picture")}

    answer = await upload(client, "sendMediaGroup", files, chat_id=CHANNEL, media=media)

    words = 'failed to send message #2 with the error message "IMAGE_PROCESS_FAILED"'
    assert answer.body["description"] == f"Bad Request: {words}"
    assert await client.shown() == []


async def test_every_item_is_a_message_with_its_own_caption_in_one_group(client):
    answer = await send_album(
        client,
        {"type": "photo", "caption": "*one*", "parse_mode": "MarkdownV2"},
        {"type": "photo"},
        {"type": "photo", "caption": "three"},
    )

    messages = answer.body["result"]
    assert [message["message_id"] for message in messages] == [1, 2, 3]
    assert [message.get("caption") for message in messages] == ["one", None, "three"]
    assert messages[0]["caption_entities"] == [{"type": "bold", "offset": 0, "length": 3}]
    assert len({message["media_group_id"] for message in messages}) == 1
    assert (await client.log())[-1]["message_ids"] == [1, 2, 3]


async def test_a_parse_mode_beside_the_items_has_no_effect(lenient):
    answer = await send_album(lenient, {"type": "photo", "caption": "<b>x</b>"}, {"type": "photo"}, parse_mode="HTML")

    assert answer.body["result"][0]["caption"] == "<b>x</b>"


async def test_buttons_are_ignored_and_not_refused(client):
    keyboard = {"inline_keyboard": [[{"text": "a", "callback_data": "x"}]]}

    answer = await send_album(client, {"type": "photo"}, {"type": "photo"}, reply_markup=keyboard)

    assert answer.status == 200
    assert not any("reply_markup" in message for message in answer.body["result"])


async def test_one_item_alone_is_an_ordinary_message_in_a_list(client):
    answer = await send_album(client, {"type": "photo"})

    (message,) = answer.body["result"]
    assert "media_group_id" not in message


async def test_files_sent_before_and_uploads_go_together(client):
    before = (await sent_file(client, "photo", chat_id=CHANNEL))["file_id"]

    answer = await send_album(client, {"type": "photo", "media": before}, {"type": "photo"})

    assert answer.body["result"][0]["photo"][0]["file_id"] == before


async def test_an_album_takes_one_slot(client):
    await client.control("chats", {"platform": "telegram", "id": CHANNEL, "limits": [{"count": 2, "per": 60}]})

    statuses = [(await send_album(client, {"type": "photo"}, {"type": "photo"})).status for _ in range(3)]

    assert statuses == [200, 200, 429]


async def test_the_log_shows_the_first_caption_even_of_a_refused_album(client):
    await send_album(client, {"type": "photo"}, {"type": "animation", "caption": "tag-17"})

    entry = (await client.log())[-1]
    assert (entry["verdict"], entry["text"], entry["message_ids"]) == ("refused", "tag-17", [])
