"""``maxo``, another client somebody else wrote, used as it is: only the base URL is ours. It needs Python 3.12."""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

if sys.version_info < (3, 12):
    pytest.skip("maxo needs Python 3.12 or newer", allow_module_level=True)

from maxo.bot.api_client import MaxApiClient
from maxo.bot.methods import (
    AnswerOnCallback,
    DeleteMessage,
    EditMessage,
    GetChat,
    GetMembership,
    GetMessageById,
    GetMyInfo,
    GetUpdates,
    GetUploadUrl,
    SendMessage,
    UploadMedia,
)
from maxo.enums import UploadType
from maxo.errors import MaxBotApiError, RetvalReturnedError
from maxo.serialization import create_retort
from maxo.types import (
    AudioAttachmentRequest,
    CallbackButton,
    FileAttachmentRequest,
    InlineKeyboardAttachmentRequest,
    LinkButton,
    NewMessageBody,
    PhotoAttachmentRequest,
    VideoAttachmentRequest,
)
from maxo.utils.upload_media import BufferedInputFile
from unihttp.http import UploadFile

CHANNEL = -7001
TOKEN = "max-token"
REQUESTS = {
    UploadType.IMAGE: PhotoAttachmentRequest,
    UploadType.VIDEO: VideoAttachmentRequest,
    UploadType.AUDIO: AudioAttachmentRequest,
    UploadType.FILE: FileAttachmentRequest,
}
NAMES = {UploadType.IMAGE: "a.png", UploadType.VIDEO: "a.mp4", UploadType.AUDIO: "a.mp3", UploadType.FILE: "a.txt"}

Api = MaxApiClient


def api_of(client: Any, token: str = TOKEN) -> MaxApiClient:
    retort = create_retort(warming_up=False)
    return MaxApiClient(token, retort, retort, base_url=f"{client.base}/max/")


@pytest.fixture
async def api(client):
    api = api_of(client)
    yield api
    await api.close()


def keyboard() -> Any:
    buttons = [CallbackButton(text="Yes", payload="yes"), LinkButton(text="Site", url="https://example.org")]
    return InlineKeyboardAttachmentRequest.factory(buttons=[buttons])


async def whole(api: Api, kind: UploadType) -> Any:
    opened = await api.call_method(GetUploadUrl(type=kind))
    try:
        file = UploadFile(file=b"bytes", filename=NAMES[kind])
        token = (await api.call_method(UploadMedia(upload_url=opened.url, file=file))).last_token
    except RetvalReturnedError:
        token = opened.unsafe_token
    return REQUESTS[kind].factory(token=token)


async def in_pieces(api: Api, kind: UploadType) -> Any:
    opened = await api.call_method(GetUploadUrl(type=kind))
    answer = await api.upload_resumable(opened.url, BufferedInputFile(b"bytes" * 1000, NAMES[kind], kind))
    return REQUESTS[kind].factory(token=answer.last_token if answer else opened.unsafe_token)


async def send(api: Api, text: str | None, *attachments: Any) -> Any:
    method = SendMessage(chat_id=CHANNEL, text=text, attachments=list(attachments) or None)
    return (await api.call_method(method)).message


async def text(api: Api) -> Any:
    return await send(api, "plain")


async def picture(api: Api) -> Any:
    return await send(api, "caption", await whole(api, UploadType.IMAGE))


async def album(api: Api) -> Any:
    images = [await whole(api, UploadType.IMAGE), await in_pieces(api, UploadType.IMAGE)]
    return await send(api, "album", *images, await in_pieces(api, UploadType.VIDEO))


async def sound(api: Api) -> Any:
    return await send(api, None, await whole(api, UploadType.AUDIO))


async def file_with_buttons(api: Api) -> Any:
    return await send(api, "read", await whole(api, UploadType.FILE), keyboard())


SENT = [
    (text, "plain", []),
    (picture, "caption", ["image"]),
    (album, "album", ["image", "image", "video"]),
    (sound, None, ["audio"]),
    (file_with_buttons, "read", ["inline_keyboard", "file"]),
]


@pytest.mark.parametrize(("call", "words", "kinds"), SENT, ids=[call.__name__ for call, _, _ in SENT])
async def test_what_it_sends_is_shown(client, api, call: Callable[[Api], Awaitable[Any]], words, kinds):
    sent = await call(api)

    read = await api.call_method(GetMessageById(message_id=sent.body.mid))
    (shown,) = (await client.ask("GET", f"/_sim/chats/max/{CHANNEL}/messages")).body["messages"]
    assert read.body.mid == sent.body.mid
    assert shown["text"] == (words or "")
    assert [one["type"] for one in shown["extra"].get("attachments", []) + shown["buttons"]] == kinds


async def test_it_edits_and_deletes_and_takes_a_failure_with_200_for_an_error(client, api):
    mid = (await file_with_buttons(api)).body.mid

    edited = await api.call_method(EditMessage(message_id=mid, text="changed", attachments=[keyboard()]))
    shown = await client.shown("max", CHANNEL)
    deleted = await api.call_method(DeleteMessage(message_id=mid))
    with pytest.raises(MaxBotApiError, match="Message not found"):
        await api.call_method(DeleteMessage(message_id=mid))

    assert (edited.success, deleted.success, shown) == (True, True, ["changed"])


async def test_it_knows_itself_its_chats_and_its_rights(api):
    me = await api.call_method(GetMyInfo())
    chat = await api.call_method(GetChat(chat_id=CHANNEL))
    rights = await api.call_method(GetMembership(chat_id=CHANNEL))

    assert (me.is_bot, chat.title, rights.is_admin) == (True, "News", True)


async def test_it_answers_a_pressed_button(client, api):
    await client.control("max/customers/9/start", {})
    method = SendMessage(user_id=9, text="choose", attachments=[keyboard()])
    mid = (await api.call_method(method)).message.body.mid
    await client.control("max/customers/9/press", {"message_id": mid, "button": "Yes"})

    update = (await api.call_method(GetUpdates(timeout=0))).updates[0]
    answer = AnswerOnCallback(
        callback_id=update.callback.callback_id, message=NewMessageBody(text="done"), notification="thanks"
    )

    assert (await api.call_method(answer)).success
    assert await client.shown("max", 9 ^ 1 << 40) == ["done"]


async def to_nobody(api: Api) -> Any:
    return await api.call_method(SendMessage(chat_id=-404, text="x"))


async def too_long(api: Api) -> Any:
    return await send(api, "a" * 4001)


async def file_and_picture(api: Api) -> Any:
    return await send(api, "x", await whole(api, UploadType.FILE), await whole(api, UploadType.IMAGE))


async def strange_picture(api: Api) -> Any:
    opened = await api.call_method(GetUploadUrl(type=UploadType.IMAGE))
    return await api.call_method(UploadMedia(upload_url=opened.url, file=UploadFile(b"x", filename="a.svg")))


REFUSED = [
    (to_nobody, "MaxBotNotFoundError", "Chat -404 not found"),
    (too_long, "MaxBotBadRequestError", "text: size must be between 0 and 4000"),
    (file_and_picture, "MaxBotBadRequestError", "attachments: `file` must be the only attachment in message"),
    (strange_picture, "MaxBotUnsupportedMediaTypeError", "File extension is forbidden"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED, ids=[call.__name__ for call, _, _ in REFUSED])
async def test_it_reads_the_error_it_should_get(api, call, kind, words):
    with pytest.raises(MaxBotApiError) as raised:
        await call(api)

    assert (type(raised.value).__name__, raised.value.message) == (kind, words)


async def test_it_notices_a_dead_token(client):
    stranger = api_of(client, "nobody")

    with pytest.raises(MaxBotApiError) as raised:
        await text(stranger)

    assert (raised.value.code, raised.value.message) == ("verify.token", "Invalid access_token")
    await stranger.close()
