"""Other people's clients, unmodified but for the address: what they send arrives, what they are refused they name.

``CALLS`` and ``REFUSALS`` are the tables; each client translates a row into its own words and back.
"""

from typing import Any

import pytest
from harness.telegram_clients import CHANNEL, CLIENTS, CLIP, LETTER, PICTURES

TOKEN = "1001:telegram-token"
GROUP = -50
SUPERGROUP = -1002000000001


@pytest.fixture(autouse=True)
def waits_are_spans_of_time(monkeypatch):
    """What python-telegram-bot asks to be told, so that it does not warn of its next version."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")


@pytest.fixture(params=CLIENTS)
async def spoken(request, client):
    async with CLIENTS[request.param](client.base, TOKEN) as spoken:
        yield spoken


def written(message: Any) -> tuple[str | None, list[str]]:
    entities = message.entities or message.caption_entities or ()
    return message.text or message.caption, [str(getattr(entity.type, "value", entity.type)) for entity in entities]


def files(message: Any) -> list[Any]:
    """An animation is also shown as a document."""
    kinds = (message.photo and message.photo[-1], message.video, message.animation or message.document, message.audio)
    return [file for file in kinds if file]


def buttons(message: Any) -> list[tuple[str, str]]:
    rows = message.reply_markup.inline_keyboard if message.reply_markup else ()
    return [(button.text, button.url) for row in rows for button in row]


CALLS = [
    ("text", [("hello", ["bold"])], [], []),
    ("photo", [("seen", ["italic"])], [], [len(PICTURES[0])]),
    ("album", [("first", ["bold"]), (None, [])], [], [len(picture) for picture in PICTURES]),
    ("document", [("read", [])], [("Open", "https://example.org/a")], [len(LETTER)]),
    ("video", [("moving", [])], [], [len(CLIP)]),
    ("animation", [(None, [])], [], [len(CLIP)]),
    ("audio", [(None, [])], [], [len(CLIP)]),
]


@pytest.mark.parametrize(("call", "texts", "keyboard", "sizes"), CALLS, ids=[row[0] for row in CALLS])
async def test_what_a_client_sends_comes_back_as_its_own_message(spoken, client, call, texts, keyboard, sizes):
    sent = await getattr(spoken, call)()
    messages = list(sent) if isinstance(sent, list | tuple) else [sent]

    assert [written(message) for message in messages] == texts
    assert [button for message in messages for button in buttons(message)] == keyboard
    assert [file.file_size for message in messages for file in files(message)] == sizes
    assert [message.message_id for message in messages] == (await client.log())[-1]["message_ids"]
    assert len({message.media_group_id for message in messages}) == 1
    assert (messages[0].media_group_id is not None) is (call == "album")


async def test_a_client_sends_the_longest_text(spoken):
    """pyTelegramBotAPI sends it in the query, 24 KB long."""
    sent = await spoken.text(words="ж" * 4096)

    assert sent.text == "ж" * 4096


async def test_the_bytes_a_client_uploads_are_the_bytes_it_downloads(spoken):
    document = (await spoken.document()).document
    photo = (await spoken.photo()).photo[-1]

    assert (document.file_name, await spoken.download(document.file_id)) == ("letter.txt", LETTER)
    assert ((photo.width, photo.height), await spoken.download(photo.file_id)) == ((40, 30), PICTURES[0])


async def test_a_client_sends_a_file_again_by_its_id(spoken):
    photo = (await spoken.photo()).photo[-1]

    again = (await spoken.photo_by_id(photo.file_id)).photo[-1]

    assert (again.file_id, again.file_unique_id) == (photo.file_id, photo.file_unique_id)


async def test_a_client_edits_and_deletes_what_it_sent(spoken, client):
    text, document = await spoken.text(), await spoken.document()

    edited = await spoken.edit(text.message_id)
    captioned = await spoken.edit_caption(document.message_id)
    gone = await spoken.delete(text.message_id)

    assert (edited.text, edited.edit_date is not None) == ("changed", True)
    assert (captioned.caption, captioned.document.file_name, buttons(captioned)) == ("changed", "letter.txt", [])
    assert gone is True
    assert await client.shown() == ["changed"]


async def test_a_client_understands_who_and_where_it_is(spoken):
    me, chat, member = await spoken.describe()

    assert (me.id, me.is_bot, chat.title, chat.type) == (1001, True, "News", "channel")
    assert (str(getattr(member.status, "value", member.status)), member.user.id) == ("administrator", 1001)
    assert member.can_post_messages is True


def place(chat_id: int, type_: str, **state: Any) -> dict[str, Any]:
    return {"platform": "telegram", "id": chat_id, "type": type_, **state}


SLOWED = [{"count": 0, "per": 17}]
REFUSALS = [
    ("chat not found", place(-1009, "channel", state="not_found"), "bad request", "chat not found", None),
    ("kicked", place(GROUP, "group", state="kicked"), "forbidden", "bot was kicked from the group chat", None),
    ("too fast", place(CHANNEL, "channel", limits=SLOWED), "retry after", "", 17),
    ("migrated", place(GROUP, "group", migrated_to=SUPERGROUP), "migrated", "", SUPERGROUP),
]


@pytest.mark.parametrize(("name", "chat", "kind", "words", "number"), REFUSALS, ids=[row[0] for row in REFUSALS])
async def test_a_client_names_the_refusal_as_the_real_one(spoken, client, name, chat, kind, words, number):
    await client.control("chats", chat)

    seen, message, told = await spoken.refusal(chat["id"])

    assert (seen, told) == (kind, number)
    assert words in message.lower()


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_dead_token_is_known_as_such(client, name):
    async with CLIENTS[name](client.base, "1001:dead") as spoken:
        seen, _, _ = await spoken.refusal(CHANNEL)

    assert seen == "bad token"
