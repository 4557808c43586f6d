"""Actions of people in Telegram: start or stop a bot, write, edit, press buttons, add the bot to a chat or remove it.

Every action becomes an update of the bot. What is written to a channel is written by its administrators.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.fingerprint import as_fingerprint
from autopost_simulator.impossible import Impossible
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.chats.members import membership
from autopost_simulator.telegram.markup.finish import TextError, finish
from autopost_simulator.telegram.markup.formatting import Formatted
from autopost_simulator.telegram.request.params import MultipartFile
from autopost_simulator.telegram.sending.media import RequestedMedia
from autopost_simulator.telegram.sending.take_in import Intake
from autopost_simulator.telegram.storage.files import TelegramFiles
from autopost_simulator.telegram.updates.actions import Edited, Joined, Pressed, SentFile, Started, Written
from autopost_simulator.telegram.updates.callbacks import CallbackQueries
from autopost_simulator.telegram.updates.people import TelegramPeople, TelegramPerson
from autopost_simulator.telegram.updates.update_queue import BotUpdate
from autopost_simulator.telegram.updates.updates import BotUpdates
from autopost_simulator.world import Bot, Chat, ChatPost, ChatState, World, new_chat

PRESS_LIFETIME = timedelta(seconds=150)


class TelegramCustomers:
    def __init__(
        self,
        world: World,
        clock: Clock,
        updates: BotUpdates,
        callbacks: CallbackQueries,
        files: TelegramFiles,
        intake: Intake,
    ) -> None:
        self._world = world
        self._clock = clock
        self._updates = updates
        self._callbacks = callbacks
        self._files = files
        self._intake = intake
        self._people = TelegramPeople()

    def start(self, user_id: int, spec: Started) -> BotUpdate | None:
        bot, person = self._bot(spec.token), self._people.meet(user_id, spec)
        chat = self._private(person)
        if chat.state != "ok":
            self._move(bot, chat, person, "ok")
        return self._say(bot, person, chat, Written(text=f"/start {spec.payload}" if spec.payload else "/start"))

    def stop(self, user_id: int, spec: Started) -> BotUpdate | None:
        bot, person = self._bot(spec.token), self._people.meet(user_id, spec)
        return self._move(bot, self._private(person), person, "blocked")

    def write(self, user_id: int, spec: Written) -> BotUpdate | None:
        bot, person = self._bot(spec.token), self._people.meet(user_id, spec)
        return self._say(bot, person, self._place(person, spec.chat_id), spec)

    def edit(self, user_id: int, spec: Edited) -> BotUpdate | None:
        bot, person = self._bot(spec.token), self._people.meet(user_id, spec)
        chat = self._place(person, spec.chat_id)
        post = _post(chat, spec.message_id)
        if shapes.written_by(post, post.bot):
            raise Impossible(f"message {spec.message_id} was not written by a person")
        written = _formatted(spec.text, may_be_empty="media" in post.extra)
        extra = post.extra | {"edit_date": int(self._clock.now().timestamp())}
        chat.posts[post.id] = replace(post, text=written.text, markup=written.entities, extra=extra)
        return self._tell(bot, chat, chat.posts[post.id], edited=True)

    def press(self, user_id: int, spec: Pressed) -> BotUpdate | None:
        person = self._people.meet(user_id, spec)
        chat = self._place(person, spec.chat_id)
        post = _post(chat, spec.message_id)
        pressed = self._callbacks.press(post.bot, user_id, chat.id, post.id, _callback_data(post, spec.button))
        query = {
            "id": pressed.id,
            "from": person.shape(),
            "message": shapes.message(chat, post),
            "chat_instance": _chat_instance(chat),
            "data": pressed.data,
        }
        return self._updates.publish(post.bot, "callback_query", query, ("user", user_id), PRESS_LIFETIME)

    def add_bot(self, user_id: int, spec: Joined) -> BotUpdate | None:
        bot, person = self._bot(spec.token), self._people.meet(user_id, spec)
        chat = self._world.chats.get(("telegram", spec.chat_id))
        if chat is None:
            chat = self._world.chats["telegram", spec.chat_id] = new_chat("telegram", spec.chat_id, spec.type)
            chat.state = "not_member"
        chat.title = spec.title or chat.title
        return self._move(bot, chat, person, "ok", before=lambda: setattr(chat, "role", spec.role or chat.role))

    def remove_bot(self, user_id: int, spec: Joined) -> BotUpdate | None:
        bot, person = self._bot(spec.token), self._people.meet(user_id, spec)
        return self._move(bot, self._place(person, spec.chat_id), person, "kicked")

    def clear(self) -> None:
        self._people.clear()

    def _say(self, bot: Bot, person: TelegramPerson, chat: Chat, spec: Written) -> BotUpdate | None:
        written = _formatted(spec.text, may_be_empty=spec.file is not None)
        extra: dict[str, Any] = {"by_person": person.id} if chat.type == "channel" else {"from": person.shape()}
        if spec.reply_to is not None:
            answered = shapes.message(chat, _post(chat, spec.reply_to))
            extra["reply_to_message"] = {name: answered[name] for name in answered if name != "reply_to_message"}
        if spec.thread_id is not None:
            extra |= {"message_thread_id": spec.thread_id, "is_topic_message": True}
        if spec.file is not None:
            extra |= self._enclosed(bot, spec.file, written)
        post = ChatPost(
            id=chat.last_id + 1,
            bot=bot,
            at=self._clock.now(),
            text=written.text,
            markup=written.entities,
            buttons=None,
            extra=extra,
        )
        chat.show(post)
        return self._tell(bot, chat, post)

    def _enclosed(self, bot: Bot, file: SentFile, caption: Formatted) -> dict[str, Any]:
        source = MultipartFile(file.name, file.data)
        held = self._intake.take_in(
            bot, RequestedMedia(kind=file.kind, source=source, caption=caption, attributes={}, options={})
        )
        return {"media": shapes.media_shown(held)} | shapes.media_fields(held, self._files.id_for(bot, held))

    def _tell(self, bot: Bot, chat: Chat, post: ChatPost, *, edited: bool = False) -> BotUpdate | None:
        kind = "channel_post" if chat.type == "channel" else "message"
        kind = f"edited_{kind}" if edited else kind
        return self._updates.publish(bot, kind, shapes.message(chat, post), ("chat", chat.id))

    def _move(
        self,
        bot: Bot,
        chat: Chat,
        person: TelegramPerson,
        state: ChatState,
        before: Callable[[], None] = lambda: None,
    ) -> BotUpdate | None:
        """A person who stops a bot kicks it from the private chat."""
        old = _member(bot, chat)
        chat.state = state
        before()
        change = {
            "chat": shapes.chat(chat),
            "from": person.shape(),
            "date": int(self._clock.now().timestamp()),
            "old_chat_member": old,
            "new_chat_member": _member(bot, chat),
        }
        return self._updates.publish(bot, "my_chat_member", change, ("chat", chat.id))

    def _bot(self, token: str | None) -> Bot:
        bots = [bot for (platform, _), bot in self._world.bots.items() if platform == "telegram"]
        if token is not None:
            bots = [bot for bot in bots if bot.fingerprint == as_fingerprint(token)]
        if len(bots) != 1:
            raise Impossible("`token` must be the token of a bot in Telegram")
        return bots[0]

    def _private(self, person: TelegramPerson) -> Chat:
        chat = self._world.chats.get(("telegram", person.id)) or new_chat("telegram", person.id, "private")
        chat.title, chat.username = person.first_name, person.username
        self._world.chats["telegram", person.id] = chat
        return chat

    def _place(self, person: TelegramPerson, chat_id: int | None) -> Chat:
        if chat_id is None or chat_id == person.id:
            return self._private(person)
        chat = self._world.chats.get(("telegram", chat_id))
        if chat is None:
            raise Impossible(f"chat {chat_id} not found")
        return chat


def _post(chat: Chat, message_id: int) -> ChatPost:
    post = chat.posts.get(message_id)
    if post is None:
        raise Impossible(f"message {message_id} not found")
    return post


def _formatted(text: str, *, may_be_empty: bool) -> Formatted:
    try:
        return finish(Formatted(text, []), may_be_empty=may_be_empty)
    except TextError:
        raise Impossible("give `text` or `file`") from None


def _member(bot: Bot, chat: Chat) -> dict[str, Any]:
    if chat.type == "private":
        standing: dict[str, Any] = {"status": "member"} if chat.state == "ok" else {"status": "kicked", "until_date": 0}
    else:
        standing = membership(chat)
    return {"user": shapes.user(bot)} | standing


def _callback_data(post: ChatPost, text: str) -> str:
    for row in (post.buttons or {}).get("inline_keyboard", ()):
        for button in row:
            if button["text"] == text and "callback_data" in button:
                return str(button["callback_data"])
    raise Impossible(f"the message has no button {text!r} with `callback_data`")


def _chat_instance(chat: Chat) -> str:
    return str(int(hashlib.sha256(str(chat.id).encode()).hexdigest()[:15], 16))
