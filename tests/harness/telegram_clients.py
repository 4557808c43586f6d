"""aiogram, python-telegram-bot and pyTelegramBotAPI, unmodified but for the address, behind one set of questions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from io import BytesIO
from typing import Any, Protocol

import aiogram
import telebot
import telegram
from aiogram import exceptions as refused_by_aiogram
from aiogram import types as aiogram_types
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from telebot import apihelper
from telebot.types import InlineKeyboardButton, InlineKeyboardMarkup, InputFile, InputMediaPhoto
from telegram import error as refused_by_ptb

from harness.telegram_media import png

CHANNEL = -1001000000001
PICTURES = [png(shade=10), png(shade=200)]
CLIP = b"moving pictures " * 50
HELLO = "<b>hello</b>"
LETTER = b"Dear reader\n" * 100


class Spoken(Protocol):
    """What the tables ask of a client; messages come back in the client's own types."""

    async def text(self, chat: int = CHANNEL, words: str = HELLO) -> Any: ...
    async def photo(self) -> Any: ...
    async def album(self) -> Any: ...
    async def document(self) -> Any: ...
    async def video(self) -> Any: ...
    async def animation(self) -> Any: ...
    async def audio(self) -> Any: ...
    async def edit(self, message_id: int) -> Any: ...
    async def edit_caption(self, message_id: int) -> Any: ...
    async def delete(self, message_id: int) -> Any: ...
    async def download(self, file_id: str) -> bytes: ...
    async def photo_by_id(self, file_id: str) -> Any: ...
    async def describe(self) -> tuple[Any, Any, Any]: ...
    async def refusal(self, chat: int) -> tuple[str, str, int | None]: ...


class Aiogram:
    def __init__(self, bot: aiogram.Bot) -> None:
        self.bot = bot

    async def text(self, chat: int = CHANNEL, words: str = HELLO) -> Any:
        return await self.bot.send_message(chat, words, parse_mode="HTML")

    async def photo(self) -> Any:
        picture = aiogram_types.BufferedInputFile(PICTURES[0], "a.png")
        return await self.bot.send_photo(CHANNEL, picture, caption="<i>seen</i>", parse_mode="HTML")

    async def album(self) -> Any:
        files = [aiogram_types.BufferedInputFile(picture, "a.png") for picture in PICTURES]
        first = aiogram_types.InputMediaPhoto(media=files[0], caption="*first*", parse_mode="Markdown")
        return await self.bot.send_media_group(CHANNEL, [first, aiogram_types.InputMediaPhoto(media=files[1])])

    async def document(self) -> Any:
        button = aiogram_types.InlineKeyboardButton(text="Open", url="https://example.org/a")
        return await self.bot.send_document(
            CHANNEL,
            aiogram_types.BufferedInputFile(LETTER, "letter.txt"),
            caption="read",
            reply_markup=aiogram_types.InlineKeyboardMarkup(inline_keyboard=[[button]]),
        )

    async def video(self) -> Any:
        clip = aiogram_types.BufferedInputFile(CLIP, "clip.mp4")
        return await self.bot.send_video(CHANNEL, clip, width=640, height=360, duration=9, caption="moving")

    async def animation(self) -> Any:
        return await self.bot.send_animation(CHANNEL, aiogram_types.BufferedInputFile(CLIP, "clip.mp4"))

    async def audio(self) -> Any:
        song = aiogram_types.BufferedInputFile(CLIP, "song.mp3")
        return await self.bot.send_audio(CHANNEL, song, performer="Choir", title="Song", duration=9)

    async def edit(self, message_id: int) -> Any:
        return await self.bot.edit_message_text("changed", chat_id=CHANNEL, message_id=message_id)

    async def edit_caption(self, message_id: int) -> Any:
        return await self.bot.edit_message_caption(chat_id=CHANNEL, message_id=message_id, caption="changed")

    async def delete(self, message_id: int) -> Any:
        return await self.bot.delete_message(CHANNEL, message_id)

    async def download(self, file_id: str) -> bytes:
        content = await self.bot.download(file_id)
        assert content is not None
        return content.read()

    async def photo_by_id(self, file_id: str) -> Any:
        return await self.bot.send_photo(CHANNEL, file_id)

    async def describe(self) -> tuple[Any, Any, Any]:
        me = await self.bot.get_me()
        return me, await self.bot.get_chat(CHANNEL), await self.bot.get_chat_member(CHANNEL, me.id)

    async def refusal(self, chat: int) -> tuple[str, str, int | None]:
        try:
            await self.text(chat)
        except refused_by_aiogram.TelegramRetryAfter as refused:
            return "retry after", refused.message, refused.retry_after
        except refused_by_aiogram.TelegramMigrateToChat as refused:
            return "migrated", refused.message, refused.migrate_to_chat_id
        except refused_by_aiogram.TelegramForbiddenError as refused:
            return "forbidden", refused.message, None
        except refused_by_aiogram.TelegramUnauthorizedError as refused:
            return "bad token", refused.message, None
        except refused_by_aiogram.TelegramBadRequest as refused:
            return "bad request", refused.message, None
        raise AssertionError("was accepted")


class Ptb:
    def __init__(self, bot: telegram.Bot) -> None:
        self.bot = bot

    async def text(self, chat: int = CHANNEL, words: str = HELLO) -> Any:
        return await self.bot.send_message(chat, words, parse_mode="HTML")

    async def photo(self) -> Any:
        return await self.bot.send_photo(CHANNEL, BytesIO(PICTURES[0]), caption="<i>seen</i>", parse_mode="HTML")

    async def album(self) -> Any:
        first = telegram.InputMediaPhoto(PICTURES[0], caption="*first*", parse_mode="Markdown")
        return await self.bot.send_media_group(CHANNEL, [first, telegram.InputMediaPhoto(PICTURES[1])])

    async def document(self) -> Any:
        button = telegram.InlineKeyboardButton("Open", url="https://example.org/a")
        return await self.bot.send_document(
            CHANNEL,
            LETTER,
            filename="letter.txt",
            caption="read",
            reply_markup=telegram.InlineKeyboardMarkup([[button]]),
        )

    async def video(self) -> Any:
        return await self.bot.send_video(
            CHANNEL, CLIP, filename="clip.mp4", width=640, height=360, duration=9, caption="moving"
        )

    async def animation(self) -> Any:
        return await self.bot.send_animation(CHANNEL, CLIP, filename="clip.mp4")

    async def audio(self) -> Any:
        return await self.bot.send_audio(
            CHANNEL, CLIP, filename="song.mp3", performer="Choir", title="Song", duration=9
        )

    async def edit(self, message_id: int) -> Any:
        return await self.bot.edit_message_text("changed", CHANNEL, message_id)

    async def edit_caption(self, message_id: int) -> Any:
        return await self.bot.edit_message_caption(CHANNEL, message_id, caption="changed")

    async def delete(self, message_id: int) -> Any:
        return await self.bot.delete_message(CHANNEL, message_id)

    async def download(self, file_id: str) -> bytes:
        return bytes(await (await self.bot.get_file(file_id)).download_as_bytearray())

    async def photo_by_id(self, file_id: str) -> Any:
        return await self.bot.send_photo(CHANNEL, file_id)

    async def describe(self) -> tuple[Any, Any, Any]:
        me = await self.bot.get_me()
        return me, await self.bot.get_chat(CHANNEL), await self.bot.get_chat_member(CHANNEL, me.id)

    async def refusal(self, chat: int) -> tuple[str, str, int | None]:
        try:
            await self.text(chat)
        except refused_by_ptb.RetryAfter as refused:
            assert isinstance(refused.retry_after, timedelta)
            return "retry after", refused.message, int(refused.retry_after.total_seconds())
        except refused_by_ptb.ChatMigrated as refused:
            return "migrated", refused.message, refused.new_chat_id
        except refused_by_ptb.Forbidden as refused:
            return "forbidden", refused.message, None
        except refused_by_ptb.InvalidToken as refused:
            return "bad token", refused.message, None
        except refused_by_ptb.BadRequest as refused:
            return "bad request", refused.message, None
        raise AssertionError("was accepted")


class PyTelegramBotApi:
    """It blocks, and sends what is no file in the query."""

    def __init__(self, bot: telebot.TeleBot) -> None:
        self.bot = bot

    async def text(self, chat: int = CHANNEL, words: str = HELLO) -> Any:
        return await asyncio.to_thread(self.bot.send_message, chat, words, parse_mode="HTML")

    async def photo(self) -> Any:
        return await asyncio.to_thread(
            self.bot.send_photo, CHANNEL, PICTURES[0], caption="<i>seen</i>", parse_mode="HTML"
        )

    async def album(self) -> Any:
        files = [InputFile(BytesIO(picture), "a.png") for picture in PICTURES]
        first = InputMediaPhoto(files[0], caption="*first*", parse_mode="Markdown")
        return await asyncio.to_thread(self.bot.send_media_group, CHANNEL, [first, InputMediaPhoto(files[1])])

    async def document(self) -> Any:
        buttons = InlineKeyboardMarkup([[InlineKeyboardButton("Open", url="https://example.org/a")]])
        return await asyncio.to_thread(
            self.bot.send_document,
            CHANNEL,
            LETTER,
            visible_file_name="letter.txt",
            caption="read",
            reply_markup=buttons,
        )

    async def video(self) -> Any:
        return await asyncio.to_thread(
            self.bot.send_video, CHANNEL, CLIP, width=640, height=360, duration=9, caption="moving"
        )

    async def animation(self) -> Any:
        return await asyncio.to_thread(self.bot.send_animation, CHANNEL, InputFile(BytesIO(CLIP), "clip.mp4"))

    async def audio(self) -> Any:
        return await asyncio.to_thread(self.bot.send_audio, CHANNEL, CLIP, performer="Choir", title="Song", duration=9)

    async def edit(self, message_id: int) -> Any:
        return await asyncio.to_thread(self.bot.edit_message_text, "changed", CHANNEL, message_id)

    async def edit_caption(self, message_id: int) -> Any:
        return await asyncio.to_thread(self.bot.edit_message_caption, "changed", CHANNEL, message_id)

    async def delete(self, message_id: int) -> Any:
        return await asyncio.to_thread(self.bot.delete_message, CHANNEL, message_id)

    async def download(self, file_id: str) -> bytes:
        file = await asyncio.to_thread(self.bot.get_file, file_id)
        content: bytes = await asyncio.to_thread(self.bot.download_file, file.file_path)
        return content

    async def photo_by_id(self, file_id: str) -> Any:
        return await asyncio.to_thread(self.bot.send_photo, CHANNEL, file_id)

    async def describe(self) -> tuple[Any, Any, Any]:
        me = await asyncio.to_thread(self.bot.get_me)
        chat = await asyncio.to_thread(self.bot.get_chat, CHANNEL)
        return me, chat, await asyncio.to_thread(self.bot.get_chat_member, CHANNEL, me.id)

    async def refusal(self, chat: int) -> tuple[str, str, int | None]:
        try:
            await self.text(chat)
        except apihelper.ApiTelegramException as refused:
            parameters = refused.result_json.get("parameters", {})
            number = parameters.get("retry_after") or parameters.get("migrate_to_chat_id")
            kinds = {429: "retry after", 403: "forbidden", 401: "bad token", 400: "bad request"}
            kind = "migrated" if "migrate_to_chat_id" in parameters else kinds[refused.error_code]
            return kind, refused.description, number
        raise AssertionError("was accepted")


@asynccontextmanager
async def aiogram_client(base: str, token: str) -> AsyncIterator[Spoken]:
    session = AiohttpSession(api=TelegramAPIServer.from_base(base))
    async with aiogram.Bot(token, session=session) as bot:
        yield Aiogram(bot)


@asynccontextmanager
async def ptb_client(base: str, token: str) -> AsyncIterator[Spoken]:
    """Without ``initialize``, which asks ``getMe``: a dead token should fail at the call of the table."""
    bot = telegram.Bot(token, base_url=f"{base}/bot", base_file_url=f"{base}/file/bot")
    try:
        yield Ptb(bot)
    finally:
        await bot.request.shutdown()


@asynccontextmanager
async def pytelegrambotapi_client(base: str, token: str) -> AsyncIterator[Spoken]:
    """Its address belongs to the module."""
    apihelper.API_URL, apihelper.FILE_URL = f"{base}/bot{{0}}/{{1}}", f"{base}/file/bot{{0}}/{{1}}"
    try:
        yield PyTelegramBotApi(telebot.TeleBot(token, threaded=False))
    finally:
        apihelper.API_URL = apihelper.FILE_URL = None


CLIENTS = {
    "aiogram": aiogram_client,
    "python-telegram-bot": ptb_client,
    "pyTelegramBotAPI": pytelegrambotapi_client,
}
