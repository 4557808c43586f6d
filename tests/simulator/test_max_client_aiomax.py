"""``aiomax``, a client somebody else wrote, used as it is: only the base URL is ours."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import aiohttp
import aiomax
import pytest
from aiohttp import web
from aiomax import exceptions
from aiomax.buttons import CallbackButton, KeyboardBuilder, LinkButton
from harness.eventually import eventually
from harness.telegram_media import png

CHANNEL = -7001
TOKEN = "max-token"
VIDEO = b"\x00\x00\x00\x18ftypmp42" + bytes(500)
SECRET = "s3cret"

Bot = aiomax.Bot


@asynccontextmanager
async def speaking(client: Any, token: str = TOKEN) -> AsyncIterator[Bot]:
    """A bot with a session, which aiomax otherwise makes when it begins to poll."""
    bot = Bot(token, api_url=f"{client.base}/max/")
    async with aiohttp.ClientSession(base_url=bot.api_url, headers={"Authorization": token}) as bot.session:
        yield bot


@pytest.fixture
async def bot(client):
    async with speaking(client) as bot:
        yield bot


def named(name: str, content: bytes) -> BytesIO:
    file = BytesIO(content)
    file.name = name
    return file


def keyboard() -> KeyboardBuilder:
    return KeyboardBuilder().row(CallbackButton("Yes", "yes"), LinkButton("Site", "https://example.org"))


async def picture(bot: Bot) -> Any:
    return await bot.upload_image(named("a.png", png()))


async def text(bot: Bot) -> Any:
    return await bot.send_message("plain", CHANNEL)


async def html(bot: Bot) -> Any:
    return await bot.send_message("<b>bold</b>", CHANNEL, format="html")


async def markdown(bot: Bot) -> Any:
    return await bot.send_message("**bold**", CHANNEL, format="markdown")


async def one_picture(bot: Bot) -> Any:
    return await bot.send_message("caption", CHANNEL, attachments=await picture(bot))


async def album(bot: Bot) -> Any:
    media = [await picture(bot), await picture(bot), await bot.upload_video(named("a.mp4", VIDEO))]
    return await bot.send_message("album", CHANNEL, attachments=media)


async def sound(bot: Bot) -> Any:
    """With words: it cannot read a message that has none."""
    return await bot.send_message("heard", CHANNEL, attachments=await bot.upload_audio(named("a.mp3", b"ID3")))


async def file_with_buttons(bot: Bot) -> Any:
    file = await bot.upload_file(named("words.txt", b"plain words"))
    return await bot.send_message("read", CHANNEL, keyboard=keyboard(), attachments=file)


SENT = [
    (text, "plain", []),
    (html, "bold", []),
    (markdown, "bold", []),
    (one_picture, "caption", ["image"]),
    (album, "album", ["image", "image", "video"]),
    (sound, "heard", ["audio"]),
    (file_with_buttons, "read", ["file", "inline_keyboard"]),
]


@pytest.mark.parametrize(("call", "words", "kinds"), SENT, ids=[row[0].__name__ for row in SENT])
async def test_what_it_sends_is_shown(bot, call: Callable[[Bot], Awaitable[Any]], words, kinds):
    sent = await call(bot)

    read = await bot.get_message(sent.id)
    for message in (sent, read):
        assert message.body.text == words
        assert sorted(one.type for one in message.body.attachments or []) == kinds


async def test_it_edits_and_deletes(client, bot):
    sent = await file_with_buttons(bot)

    await bot.edit_message(sent.id, "changed", keyboard=keyboard())
    after = await bot.get_message(sent.id)
    await bot.delete_message(sent.id)

    assert after.body.text == "changed"
    assert await client.shown("max", CHANNEL) == []
    with pytest.raises(exceptions.UnknownErrorException, match=r"message\.not\.found"):
        await bot.get_message(sent.id)


async def test_it_knows_itself_its_chats_and_its_rights(bot):
    me, chat, rights = await bot.get_me(), await bot.get_chat(CHANNEL), await bot.my_membership(CHANNEL)

    await bot.post_action(CHANNEL, "typing_on")

    assert (me.is_bot, chat.title, rights.is_admin) == (True, "News", True)


async def nobody(bot: Bot) -> Any:
    return await bot.send_message("x", -404)


async def too_long(bot: Bot) -> Any:
    return await bot.send_message("x" * 4001, CHANNEL)


async def wide_row(bot: Bot) -> Any:
    links = [LinkButton("a", "https://example.org")] * 4
    return await bot.send_message("x", CHANNEL, keyboard=[links])


async def file_and_picture(bot: Bot) -> Any:
    media = [await bot.upload_file(named("words.txt", b"words")), await picture(bot)]
    return await bot.send_message("x", CHANNEL, attachments=media)


REFUSED = [
    (nobody, exceptions.ChatNotFound, "Chat -404 not found"),
    (too_long, exceptions.IncorrectTextLength, "^$"),
    (wide_row, exceptions.UnknownErrorException, "at most 3 buttons"),
    (file_and_picture, exceptions.UnknownErrorException, "must be the only attachment"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED, ids=[row[0].__name__ for row in REFUSED])
async def test_it_reads_the_error_it_should_get(bot, call, kind, words):
    with pytest.raises(kind, match=words):
        await call(bot)


async def test_it_notices_a_dead_token_and_a_rate(client, bot):
    await client.control("chats", {"platform": "max", "id": CHANNEL, "limits": [{"count": 0, "per": 1}]})

    async with speaking(client, "nobody") as stranger:
        with pytest.raises(exceptions.UnknownErrorException, match=r"verify\.token"):
            await stranger.get_me()
    with pytest.raises(exceptions.UnknownErrorException, match=r"too\.many\.requests"):
        await text(bot)


async def test_it_waits_until_media_is_ready(client, bot):
    await client.fault({"catalogue": "max.attachment_not_ready"}, method="POST /messages", times=1)

    await one_picture(bot)

    verdicts = [entry["verdict"] for entry in await client.log("?method=POST%20/messages")]
    assert verdicts == ["faulted", "accepted"]


def answering(bot: Bot) -> list[Any]:
    """What it hears; it answers everything."""
    heard: list[Any] = []

    @bot.on_bot_start()
    async def start(payload: Any) -> None:
        heard.append(payload.payload)
        await payload.send("choose", keyboard=keyboard())

    @bot.on_message()
    async def message(message: Any) -> None:
        heard.append(message.content)
        await message.reply(f"you said {message.content}")

    @bot.on_button_callback()
    async def press(callback: Any) -> None:
        heard.append(callback.payload)
        # `callback.answer` has an address of its own, whatever the bot's is.
        answer = {"notification": "thanks", "message": {"text": "chosen"}}
        await bot.post("answers", params={"callback_id": callback.callback_id}, json=answer)

    return heard


async def talk(client: Any, heard: list[Any]) -> None:
    await client.control("chats", {"platform": "max", "id": 9 ^ 1 << 40, "type": "dialog", "limits": []})
    await client.control("max/customers/9/start", {"payload": "ref"})
    await eventually(lambda: len(heard) == 1)
    await client.control("max/customers/9/write", {"text": "hello"})
    await eventually(lambda: len(heard) == 2)
    (mid, *_) = [message["id"] for message in await messages(client) if message["text"] == "choose"]
    await client.control("max/customers/9/press", {"message_id": mid, "button": "Yes"})
    await eventually(lambda: len(heard) == 3)

    async def chosen() -> bool:
        return "chosen" in await client.shown("max", 9 ^ 1 << 40)

    await eventually(chosen)


async def messages(client: Any) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = (await client.ask("GET", f"/_sim/chats/max/{9 ^ 1 << 40}/messages")).body["messages"]
    return shown


async def conversation(client: Any) -> list[str]:
    return sorted(message["text"] for message in await messages(client))


async def test_a_bot_that_polls_hears_people_and_answers(client):
    bot = Bot(TOKEN, api_url=f"{client.base}/max/")
    heard = answering(bot)
    polling = asyncio.create_task(bot.start_polling())
    try:
        await talk(client, heard)
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)

    assert heard == ["ref", "hello", "yes"]
    assert {"chosen", "you said hello"} <= set(await conversation(client))


async def test_a_bot_with_a_webhook_hears_people_and_answers(client, bot):
    """aiomax has no server of its own; what it does with an update is the same."""
    heard = answering(bot)

    async def hook(request: web.Request) -> web.Response:
        assert request.headers["X-Max-Bot-Api-Secret"] == SECRET
        await bot.handle_update(await request.json())
        return web.Response()

    application = web.Application()
    application.router.add_post("/hook", hook)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        await bot.post("subscriptions", json={"url": url, "secret": SECRET})
        await talk(client, heard)
    finally:
        await runner.cleanup()

    assert heard == ["ref", "hello", "yes"]
    assert {"chosen", "you said hello"} <= set(await conversation(client))
