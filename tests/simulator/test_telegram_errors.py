"""Every error of the Bot API that is known by its words: said once, with its code, to the request that earns it.

``ROWS`` are earned by a request or by the state of a token or chat. ``SCRIPTED`` cannot be earned here; each says
why, and is shown to be there for fault scripts.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from harness.telegram_media import png, sent_file, upload

TOKEN = "1001:telegram-token"
OTHER_TOKEN = "1002:other-token"
CHANNEL = -1001000000001
SUPERGROUP = -1002000000001
GROUP = -50
PERSON = 77
PAGE = "https://pictures.example.org/a.html"

Prepare = Callable[[Any], Awaitable[dict[str, Any]]]
Files = Callable[[], dict[str, tuple[str, bytes]]]


@dataclass(frozen=True)
class Row:
    """``chat`` is registered first; ``prepare`` does what else must have happened and says what to send then."""

    words: str
    code: int = 400
    method: str = "sendMessage"
    token: str = TOKEN
    chat: dict[str, Any] | None = None
    prepare: Prepare | None = None
    files: Files = dict
    params: dict[str, Any] = field(default_factory=dict)


def place(chat_id: int, type_: str, **state: Any) -> dict[str, Any]:
    return {"platform": "telegram", "id": chat_id, "type": type_, "limits": [], **state}


def text(words: str, code: int = 400, **params: Any) -> Row:
    return Row(words, code, params=params)


def aimed(words: str, code: int, chat: dict[str, Any], **params: Any) -> Row:
    return Row(words, code, chat=chat, params={"chat_id": chat["id"], **params})


def photo(words: str, code: int = 400, **params: Any) -> Row:
    return Row(words, code, method="sendPhoto", params=params)


def uploaded(words: str, content: bytes) -> Row:
    return Row(words, method="sendPhoto", files=lambda: {"photo": ("a.bin", content)})


def too_large() -> dict[str, tuple[str, bytes]]:
    return {"document": ("a.bin", bytes(50 * 1024 * 1024 + 1))}


def album(words: str, *kinds: str, **first: Any) -> Row:
    items = [{"type": kind, "media": f"attach://part{number}"} for number, kind in enumerate(kinds)]
    if items:
        items[0] |= first
    files = {f"part{number}": ("a.png", png()) for number in range(len(kinds))}
    return Row(words, method="sendMediaGroup", files=lambda: files, params={"media": items})


def prepared(words: str, prepare: Prepare, method: str, **options: Any) -> Row:
    return Row(words, method=method, prepare=prepare, **options)


def button(words: str, *rows: Any) -> Row:
    return Row(words, params={"reply_markup": {"inline_keyboard": list(rows)}})


async def of_another_bot(client: Any) -> dict[str, Any]:
    await client.control("tokens", {"platform": "telegram", "token": OTHER_TOKEN, "limits": []})
    return {"photo": (await sent_file(client, "photo", token=OTHER_TOKEN, chat_id=CHANNEL))["file_id"]}


async def a_page_that_is_no_picture(client: Any) -> dict[str, Any]:
    await client.control("web", {"url": PAGE, "content_type": "text/html", "body": "PHA+"})
    return {"photo": PAGE}


async def an_album_with_a_page(client: Any) -> dict[str, Any]:
    await a_page_that_is_no_picture(client)
    return {"media": [{"type": "photo", "media": PAGE}, {"type": "photo", "media": PAGE}]}


async def an_album_with_an_animation(client: Any) -> dict[str, Any]:
    animation = (await sent_file(client, "animation", chat_id=CHANNEL))["file_id"]
    return {"media": [{"type": "video", "media": animation}] * 2}


async def a_text(client: Any) -> dict[str, Any]:
    return {"text": "hello", "message_id": (await client.send("hello")).body["result"]["message_id"]}


async def a_text_of_another_bot(client: Any) -> dict[str, Any]:
    await client.control("tokens", {"platform": "telegram", "token": OTHER_TOKEN, "limits": []})
    sent = await client.telegram("sendMessage", token=OTHER_TOKEN, chat_id=GROUP, text="hello")
    return {"text": "mine now", "chat_id": GROUP, "message_id": sent.body["result"]["message_id"]}


async def a_large_document(client: Any) -> dict[str, Any]:
    content = bytes(20 * 1024 * 1024 + 1)
    return {"file_id": (await sent_file(client, "document", content, chat_id=CHANNEL))["file_id"]}


async def a_token_with_no_slot_for(client: Any, seconds: int = 35) -> dict[str, Any]:
    limits = [{"count": 0, "per": seconds}]
    await client.control("tokens", {"platform": "telegram", "token": TOKEN, "limits": limits})
    return {}


IN_A_GROUP = place(GROUP, "group")
FORUM = place(SUPERGROUP, "supergroup", topics=[{"id": 7, "name": "Open"}, {"id": 8, "name": "Shut", "closed": True}])
CALLBACK = {"text": "a", "callback_data": "x"}

ROWS = [
    text("Bad Request: chat not found", chat_id=-1009999),
    aimed("Bad Request: private chat not found", 400, place(PERSON, "private", state="unknown")),
    text("Bad Request: chat_id is empty", chat_id=""),
    aimed(
        "Bad Request: group chat was upgraded to a supergroup chat", 400, place(GROUP, "group", migrated_to=SUPERGROUP)
    ),
    aimed(
        "Bad Request: need administrator rights in the channel chat", 400, place(CHANNEL, "channel", state="no_rights")
    ),
    aimed("Bad Request: have no write access to the chat", 400, place(SUPERGROUP, "supergroup", state="read_only")),
    aimed(
        "Bad Request: not enough rights to send text messages to the chat",
        400,
        place(SUPERGROUP, "supergroup", forbids=["text"]),
    ),
    aimed("Bad Request: CHAT_WRITE_FORBIDDEN", 400, place(SUPERGROUP, "supergroup", state="write_forbidden")),
    aimed("Bad Request: message thread not found", 400, FORUM, message_thread_id=1),
    aimed("Bad Request: TOPIC_CLOSED", 400, FORUM, message_thread_id=8),
    aimed("Forbidden: bot was kicked from the channel chat", 403, place(CHANNEL, "channel", state="kicked")),
    aimed("Forbidden: bot was kicked from the supergroup chat", 403, place(SUPERGROUP, "supergroup", state="kicked")),
    aimed("Forbidden: bot was kicked from the group chat", 403, place(GROUP, "group", state="kicked")),
    aimed("Forbidden: bot is not a member of the channel chat", 403, place(CHANNEL, "channel", state="not_member")),
    aimed(
        "Forbidden: bot is not a member of the supergroup chat",
        403,
        place(SUPERGROUP, "supergroup", state="not_member"),
    ),
    aimed("Forbidden: bot is not a member of the group chat", 403, place(GROUP, "group", state="not_member")),
    aimed("Forbidden: the group chat was deleted", 403, place(GROUP, "group", state="deleted")),
    aimed("Forbidden: bot was blocked by the user", 403, place(PERSON, "private", state="blocked")),
    aimed("Forbidden: user is deactivated", 403, place(PERSON, "private", state="deleted")),
    aimed("Forbidden: bot can't initiate conversation with a user", 403, place(PERSON, "private", state="not_started")),
    Row("Unauthorized", 401, token="1001:revoked"),
    Row("Not Found", 404, token="malformed"),
    Row("Not Found: method not found", 404, method="sendTelegraph"),
    text("Bad Request: message text is empty", text=""),
    text("Bad Request: message is too long", text="a" * 4097),
    text("Bad Request: text is too long", text="я" * 16385),
    prepared("Bad Request: MESSAGE_TOO_LONG", a_text, "editMessageText", params={"text": "a" * 4097}),
    Row(
        "Bad Request: message caption is too long",
        method="sendPhoto",
        files=lambda: {"photo": ("a.png", png())},
        params={"caption": "a" * 1025},
    ),
    text(
        'Bad Request: can\'t parse entities: Unsupported start tag "p" at byte offset 0', text="<p>", parse_mode="HTML"
    ),
    text(
        "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\"",
        text="<b>a",
        parse_mode="HTML",
    ),
    text(
        'Bad Request: can\'t parse entities: Unmatched end tag at byte offset 10, expected "</i>", found "</b>"',
        text="<b>1234<i></b>",
        parse_mode="HTML",
    ),
    text(
        "Bad Request: can't parse entities: Character '-' is reserved and must be escaped with the preceding '\\'",
        text="a-b",
        parse_mode="MarkdownV2",
    ),
    text(
        "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 8",
        text="snake я_case",
        parse_mode="Markdown",
    ),
    text("Bad Request: unsupported parse_mode", parse_mode="BBCode"),
    prepared("Bad Request: wrong file identifier/HTTP URL specified", of_another_bot, "sendPhoto"),
    photo(
        "Bad Request: wrong remote file identifier specified: can't unserialize it. Wrong last symbol", photo="AgADBAAD"
    ),
    photo("Bad Request: wrong HTTP URL specified", photo="http://localhost/a.png"),
    photo("Bad Request: failed to get HTTP URL content", photo="https://pictures.example.org/gone.png"),
    prepared("Bad Request: wrong type of the web page content", a_page_that_is_no_picture, "sendPhoto"),
    uploaded("Bad Request: PHOTO_INVALID_DIMENSIONS", png(2, 41)),
    uploaded("Bad Request: IMAGE_PROCESS_FAILED", b"no picture"),
    photo("Bad Request: there is no photo in the request"),
    uploaded("Bad Request: file must be non-empty", b""),
    album("Bad Request: too many messages to send as an album", *["photo"] * 11),
    album("Bad Request: there are no messages to send"),
    album("Bad Request: document can't be mixed with other media types", "photo", "document"),
    prepared(
        "Bad Request: can't use the media of the specified type in the album",
        an_album_with_an_animation,
        "sendMediaGroup",
    ),
    album(
        "Bad Request: can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup", "animation", "photo"
    ),
    album("Bad Request: can't parse InputMedia: media not found", "photo", "photo", media="attach://elsewhere"),
    album(
        "Bad Request: parameter show_caption_above_media must be the same for all messages",
        "photo",
        "photo",
        show_caption_above_media=True,
    ),
    prepared(
        'Bad Request: failed to send message #1 with the error message "WEBPAGE_MEDIA_EMPTY"',
        an_album_with_a_page,
        "sendMediaGroup",
    ),
    text("Bad Request: text must be non-empty", text=" \n "),
    text(
        "Bad Request: can't parse MessageEntity: Unsupported type specified",
        entities=[{"type": "big", "offset": 0, "length": 1}],
    ),
    text("Bad Request: object expected as reply markup", reply_markup=[CALLBACK]),
    text('Bad Request: field "inline_keyboard" must be of type Array', reply_markup={"inline_keyboard": {"text": "a"}}),
    text(
        'Bad Request: field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays',
        reply_markup={"inline_keyboard": [CALLBACK]},
    ),
    button("Bad Request: inline keyboard button text must be non-empty", [{"text": "", "url": "https://e.com"}]),
    button(
        "Bad Request: inline keyboard button URL 'http://localhost/' is invalid: Wrong HTTP URL",
        [{"text": "a", "url": "http://localhost/"}],
    ),
    button(
        "Bad Request: link to a user can't be used in Web App URL buttons",
        [{"text": "a", "web_app": {"url": "tg://user?id=5"}}],
    ),
    button(
        "Bad Request: can't use switch_inline_query button in a channel chat, because users will not be able to use "
        "the button without knowing bot's username",
        [{"text": "a", "switch_inline_query": "x"}],
    ),
    button("Bad Request: BUTTON_TYPE_INVALID", [{"text": "a", "web_app": {"url": "https://e.com"}}]),
    button("Bad Request: BUTTON_COPY_TEXT_INVALID", [{"text": "a", "copy_text": {"text": "x" * 257}}]),
    button("Bad Request: BUTTON_DATA_INVALID", [{"text": "a", "callback_data": "x" * 65}]),
    button(
        "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        [{"text": "a"}],
    ),
    button("Bad Request: reply markup is too long", *[[CALLBACK]] * 101),
    text("Bad Request: message to be replied not found", reply_parameters={"message_id": 99}),
    prepared(
        "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as "
        "a current content and reply markup of the message",
        a_text,
        "editMessageText",
    ),
    Row("Bad Request: message to edit not found", method="editMessageText", params={"message_id": 99}),
    Row("Bad Request: message to delete not found", method="deleteMessage", params={"message_id": 99}),
    prepared("Bad Request: message can't be edited", a_text_of_another_bot, "editMessageText", chat=IN_A_GROUP),
    prepared("Bad Request: message can't be deleted", a_text_of_another_bot, "deleteMessage", chat=IN_A_GROUP),
    prepared("Bad Request: file is too big", a_large_document, "getFile"),
    Row("Request Entity Too Large", 413, method="sendDocument", files=too_large),
    prepared("Too Many Requests: retry after 35", a_token_with_no_slot_for, "sendMessage", code=429),
]

SCRIPTED = [
    (
        "button_url_invalid",
        400,
        "Bad Request: BUTTON_URL_INVALID",
        "the server behind refuses addresses by its own lists",
    ),
    (
        "media_caption_too_long",
        400,
        "Bad Request: MEDIA_CAPTION_TOO_LONG",
        "older words for a caption that is too long",
    ),
    (
        "group_send_failed",
        400,
        "Bad Request: group send failed",
        "an album is answered with the error of its first item",
    ),
    (
        "terminated_by_other_get_updates",
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
        "updates are not imitated",
    ),
    (
        "webhook_is_active",
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
        "updates are not imitated",
    ),
    (
        "unallowed_token",
        421,
        "Misdirected Request: unallowed token specified",
        "only a self-hosted server with a list of tokens says it",
    ),
    ("internal_server_error", 500, "Internal Server Error", "nothing breaks unless told to"),
    ("bad_gateway", 502, "Bad Gateway", "no gateway stands before the simulator"),
    ("gateway_timeout", 504, "Gateway Timeout", "no gateway stands before the simulator"),
]


NOT_OF_METHOD = {("getFile", "chat_id"), ("deleteMessage", "text")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.words)
async def test_a_request_earns_its_error_in_telegrams_words(client, row):
    if row.chat:
        assert (await client.control("chats", row.chat)).status == 200
    text = {"text": "hello"} if row.method in ("sendMessage", "editMessageText") else {}
    params = {"chat_id": CHANNEL} | text | (await row.prepare(client) if row.prepare else {}) | row.params

    if row.method in ("getFile", "deleteMessage"):
        params = {name: value for name, value in params.items() if (row.method, name) not in NOT_OF_METHOD}

    if files := row.files():
        answer = await upload(client, row.method, files, token=row.token, **params)
    else:
        answer = await client.telegram(row.method, token=row.token, **params)

    assert (answer.status, answer.body["ok"], answer.body["error_code"]) == (row.code, False, row.code)
    assert answer.body["description"] == row.words


@pytest.mark.parametrize(("name", "code", "words", "reason"), SCRIPTED, ids=[row[0] for row in SCRIPTED])
async def test_an_error_that_no_request_earns_is_there_for_a_script(client, name, code, words, reason):
    await client.fault({"catalogue": f"telegram.{name}"})

    answer = await client.send()

    assert answer.body == {"ok": False, "error_code": code, "description": words}, reason


def test_the_two_tables_name_every_known_error_once():
    known = [row.words for row in ROWS] + [words for _, _, words, _ in SCRIPTED]

    assert len(known) == len(set(known)) == 83


async def test_a_group_that_moved_says_where_it_is_now(client):
    await client.control("chats", place(GROUP, "group", migrated_to=SUPERGROUP))

    answer = await client.send(chat_id=GROUP)

    assert answer.body["parameters"] == {"migrate_to_chat_id": SUPERGROUP}


async def test_a_refusal_for_its_rate_says_when_to_come_back(client):
    await a_token_with_no_slot_for(client)

    answer = await client.send()

    assert (answer.body["parameters"], answer.headers["Retry-After"]) == ({"retry_after": 35}, "35")
