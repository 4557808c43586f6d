"""``maxapi``, a client somebody else wrote, used as it is: only the base URL is ours."""

import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web
from harness.eventually import eventually
from maxapi import Bot, Dispatcher
from maxapi.enums.parse_mode import TextFormat
from maxapi.enums.sender_action import SenderAction
from maxapi.enums.upload_type import UploadType
from maxapi.exceptions.max import InvalidToken, MaxApiError, MaxUploadFileFailed
from maxapi.types import CallbackButton, InputMediaBuffer, LinkButton
from maxapi.types.updates.message_callback import MessageForCallback
from maxapi.utils.inline_keyboard import InlineKeyboardBuilder
from maxapi.webhook.aiohttp import AiohttpMaxWebhook

CHANNEL = -7001
TOKEN = "max-token"
MP4 = b"\x00\x00\x00\x18ftypmp42" + bytes(500)


def png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def bot_of(client: Any, token: str = TOKEN) -> Bot:
    bot = Bot(token, after_input_media_delay=0.001, after_upload_retry_delay=0.001)
    bot.set_api_url(f"{client.base}/max")
    return bot


@pytest.fixture
async def bot(client):
    bot = bot_of(client)
    yield bot
    await bot.close_session()


def keyboard() -> Any:
    buttons = CallbackButton(text="Yes", payload="yes"), LinkButton(text="Site", url="https://example.org")
    return InlineKeyboardBuilder().row(*buttons).as_markup()


def picture() -> InputMediaBuffer:
    return InputMediaBuffer(png(), "picture", UploadType.IMAGE)


def video() -> InputMediaBuffer:
    return InputMediaBuffer(MP4, "video", UploadType.VIDEO)


def document() -> InputMediaBuffer:
    return InputMediaBuffer(b"plain words", "words", UploadType.FILE)


def audio() -> InputMediaBuffer:
    return InputMediaBuffer(b"ID3" + bytes(200), "sound", UploadType.AUDIO)


async def text(bot: Bot) -> Any:
    return await bot.send_message(CHANNEL, text="plain")


async def html(bot: Bot) -> Any:
    return await bot.send_message(CHANNEL, text="<b>bold</b>", format=TextFormat.HTML)


async def one_picture(bot: Bot) -> Any:
    return await bot.send_message(CHANNEL, text="caption", attachments=[picture()])


async def album(bot: Bot) -> Any:
    return await bot.send_message(CHANNEL, text="album", attachments=[picture(), picture(), video()])


async def file_with_buttons(bot: Bot) -> Any:
    return await bot.send_message(CHANNEL, text="read", attachments=[document(), keyboard()])


async def sound(bot: Bot) -> Any:
    return await bot.send_message(CHANNEL, attachments=[audio()])


@dataclass(frozen=True)
class Sent:
    call: Callable[[Bot], Awaitable[Any]]
    text: str | None
    kinds: list[str]


SENT = [
    Sent(text, "plain", []),
    Sent(html, "bold", []),
    Sent(one_picture, "caption", ["image"]),
    Sent(album, "album", ["image", "image", "video"]),
    Sent(file_with_buttons, "read", ["inline_keyboard", "file"]),
    Sent(sound, None, ["audio"]),
]


@pytest.mark.parametrize("row", SENT, ids=lambda row: row.call.__name__)
async def test_what_it_sends_is_shown(bot, row):
    sent = await row.call(bot)

    read = await bot.get_message(sent.message.body.mid)
    for message in (sent.message, read):
        assert message.body.text == row.text
        assert [one.type for one in message.body.attachments] == row.kinds


async def test_it_reads_the_formatting_back(bot):
    sent = await html(bot)

    assert sent.message.body.html_text == "<b>bold</b>"


async def test_it_downloads_what_it_uploaded(bot):
    sent = await one_picture(bot)

    assert await bot.download_bytes(sent.message.body.attachments[0].payload.url) == png()


async def test_it_waits_until_media_is_ready(client, bot):
    await client.fault({"catalogue": "max.attachment_not_ready"}, method="POST /messages", times=2)

    await one_picture(bot)

    verdicts = [entry["verdict"] for entry in await client.log("?method=POST%20/messages")]
    assert verdicts == ["faulted", "faulted", "accepted"]


async def test_it_edits_and_deletes(client, bot):
    mid = (await file_with_buttons(bot)).message.body.mid

    edited = await bot.edit_message(mid, "changed", attachments=[keyboard()])
    after = await bot.get_message(mid)
    deleted = await bot.delete_message(mid)
    again = await bot.delete_message(mid)

    assert (edited.success, deleted.success, again.success) == (True, True, False)
    assert (after.body.text, [one.type for one in after.body.attachments]) == ("changed", ["inline_keyboard"])
    assert await client.shown("max", CHANNEL) == []


async def test_it_knows_itself_its_chats_and_its_rights(bot):
    me = await bot.get_me()
    chat = await bot.get_chat_by_id(CHANNEL)
    rights = await bot.get_me_from_chat(CHANNEL)
    action = await bot.send_action(CHANNEL, SenderAction.TYPING_ON)
    listed = await bot.get_messages(CHANNEL)

    assert me.is_bot
    assert (chat.title, rights.is_admin, action.success, listed.messages) == ("News", True, True, [])


async def test_it_answers_a_pressed_button(client, bot):
    await client.control("max/customers/9/start", {})
    sent = await bot.send_message(user_id=9, text="choose", attachments=[keyboard()])
    await client.control("max/customers/9/press", {"message_id": sent.message.body.mid, "button": "Yes"})

    callback = (await bot.get_updates(timeout=0))["updates"][0]["callback"]
    answered = await bot.send_callback(callback["callback_id"], MessageForCallback(text="done"), "thanks")

    (known,) = (await client.ask("GET", "/_sim/max/callbacks")).body["callbacks"]
    assert (answered.success, known["notification"]) == (True, "thanks")
    assert (await bot.get_message(sent.message.body.mid)).body.text == "done"


async def test_it_hears_people_by_webhook_and_checks_the_secret(client, bot):
    heard: list[Any] = []
    dispatcher = Dispatcher()

    @dispatcher.message_created()
    async def on_message(event: Any) -> None:
        heard.append(event.message.body.text)

    @dispatcher.message_callback()
    async def on_callback(event: Any) -> None:
        heard.append(event.callback.payload)
        await event.ack()

    @dispatcher.bot_started()
    async def on_start(event: Any) -> None:
        heard.append(event.payload)
        await event.bot.send_message(user_id=event.user.user_id, text="choose", attachments=[keyboard()])

    runner = web.AppRunner(AiohttpMaxWebhook(dispatcher, bot, secret="s3cret").create_app("/hook"))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        with pytest.warns(UserWarning, match="HTTPS"):
            await bot.subscribe_webhook(url, secret="s3cret")

        await client.control("max/customers/9/start", {"payload": "ref"})
        await client.control("max/customers/9/write", {"text": "hello"})
        await eventually(lambda: len(heard) == 2)
        await client.control("max/customers/9/press", {"message_id": await with_buttons(bot), "button": "Yes"})
        await eventually(lambda: len(heard) == 3)
    finally:
        await runner.cleanup()

    tries = (await client.ask("GET", "/_sim/max/deliveries")).body["deliveries"]
    assert heard == ["ref", "hello", "yes"]
    assert [one["status"] for one in tries] == [200, 200, 200]


async def with_buttons(bot: Bot) -> str:
    listed = await bot.get_messages(9 ^ 1 << 40)
    return next(message.body.mid for message in listed.messages if message.body.attachments)


async def to_nobody(bot: Bot) -> Any:
    return await bot.send_message(-404, text="x")


async def too_many(bot: Bot) -> Any:
    media = await bot.upload_media(picture())
    return await bot.send_message(CHANNEL, attachments=[media] * 13)


async def file_and_picture(bot: Bot) -> Any:
    return await bot.send_message(CHANNEL, attachments=[document(), picture()])


async def strange_picture(bot: Bot) -> Any:
    return await bot.upload_media(InputMediaBuffer(b"<svg/>", "a.svg", UploadType.IMAGE))


async def wide_row(bot: Bot) -> Any:
    links = [LinkButton(text="a", url="https://example.org")] * 4
    return await bot.send_message(CHANNEL, text="x", attachments=[InlineKeyboardBuilder().row(*links).as_markup()])


REFUSED = [
    (to_nobody, MaxApiError, 404, "chat.not.found"),
    (too_many, MaxApiError, 400, "proto.payload"),
    (file_and_picture, MaxApiError, 400, "proto.payload"),
    (wide_row, MaxApiError, 400, "proto.payload"),
]


@pytest.mark.parametrize(("call", "kind", "status", "code"), REFUSED, ids=lambda value: getattr(value, "__name__", ""))
async def test_it_reads_the_error_it_should_get(bot, call, kind, status, code):
    with pytest.raises(kind) as raised:
        await call(bot)

    assert (raised.value.code, raised.value.raw["code"]) == (status, code)


async def test_it_notices_a_dead_token_a_rate_and_a_forbidden_file(client, bot):
    stranger = bot_of(client, "nobody")
    await client.control("chats", {"platform": "max", "id": CHANNEL, "limits": [{"count": 0, "per": 1}]})

    with pytest.raises(InvalidToken, match="Invalid access_token"):
        await text(stranger)
    with pytest.raises(MaxApiError) as limited:
        await text(bot)
    with pytest.raises(MaxUploadFileFailed, match=r"415.*File extension is forbidden"):
        await strange_picture(bot)

    assert (limited.value.code, limited.value.raw["code"]) == (429, "too.many.requests")
    await stranger.close_session()
