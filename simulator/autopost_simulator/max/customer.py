"""Actions of people in MAX: start or stop a bot, write to it, edit and remove, press buttons, add it to a chat.

Every action becomes an update of the bot. A dialog has another number than the person; all bots share it.
"""

import hashlib
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from autopost_simulator.clock import Clock
from autopost_simulator.fingerprint import as_fingerprint
from autopost_simulator.impossible import Impossible
from autopost_simulator.max import events, places
from autopost_simulator.max.events import Update
from autopost_simulator.max.media import Kind
from autopost_simulator.max.people import Person, PersonSpec
from autopost_simulator.max.state import MaxState
from autopost_simulator.world import Bot, Chat, ChatPost, ChatType, World, new_chat, other_side


class StartSpec(PersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``token`` is the token of the bot or its fingerprint; it may be omitted when there is only one bot."""

    token: str | None = None
    chat_id: int | None = None
    payload: Annotated[str, msgspec.Meta(max_length=128)] | None = None


class Enclosed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Kind
    name: str
    data: bytes


class Write(PersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``chat_id`` is for a group; without it the message goes to the dialog with the bot. File data is base64."""

    token: str | None = None
    chat_id: int | None = None
    text: str = ""
    files: tuple[Enclosed, ...] = ()


class Edit(PersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message_id: str
    text: str


class Remove(PersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of the person, or in a dialog one of the bot."""

    message_id: str


class Press(PersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``button`` is the text of the button."""

    message_id: str
    button: str


class Membership(PersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    chat_id: int
    token: str | None = None
    title: str | None = None
    type: ChatType | None = None


class Customers:
    def __init__(self, world: World, clock: Clock, state: MaxState) -> None:
        self._world = world
        self._clock = clock
        self._stage = state

    def start(self, user_id: int, spec: StartSpec) -> Update:
        bot, person = self._bot(spec.token), self._stage.people.meet(user_id, spec)
        chat = self._dialog(person, spec.chat_id)
        chat.state = "ok"
        return self._tell(bot, events.bot_started(chat, person, spec.payload, self._clock.now()))

    def stop(self, user_id: int, spec: StartSpec) -> Update:
        bot, person = self._bot(spec.token), self._stage.people.meet(user_id, spec)
        chat = self._dialog(person, spec.chat_id)
        chat.state = "blocked"
        return self._tell(bot, events.bot_stopped(chat, person, self._clock.now()))

    def write(self, user_id: int, spec: Write, origin: str) -> Update:
        bot, person = self._bot(spec.token), self._stage.people.meet(user_id, spec)
        if not spec.text and not spec.files:
            raise Impossible("give `text` or `files`")
        chat = self._dialog(person, None) if spec.chat_id is None else self._group(spec.chat_id)
        shown = [self._enclose(bot, file, origin) for file in spec.files]
        return self._say(bot, person, chat, spec.text, shown)

    def press(self, user_id: int, spec: Press) -> Update:
        person = self._stage.people.meet(user_id, spec)
        place = places.on_screen(self._world, spec.message_id)
        if place is None:
            raise Impossible(f"message {spec.message_id} not found")
        chat, post = place
        button = _button(post, spec.button)
        if button["type"] == "message":
            return self._say(post.bot, person, chat, button["text"], [])
        if button["type"] != "callback":
            raise Impossible(f"a `{button['type']}` button sends nothing to the bot when it is pressed")
        callback = self._stage.callbacks.press(chat, post, user_id, button["payload"])
        now = self._clock.now()
        return self._tell(post.bot, events.message_callback(chat, post, person, callback.id, callback.payload, now))

    def edit(self, user_id: int, spec: Edit) -> Update:
        chat, post = self._found(spec.message_id)
        if _author(post) != self._stage.people.meet(user_id, spec).user_id:
            raise Impossible("only the author may edit a message")
        chat.posts[post.id] = edited = replace(post, text=spec.text)
        return self._tell(post.bot, events.message_edited(chat, edited, self._clock.now()))

    def remove(self, user_id: int, spec: Remove) -> Update:
        person, (chat, post) = self._stage.people.meet(user_id, spec), self._found(spec.message_id)
        if _author(post) != person.user_id and chat.user_id != person.user_id:
            raise Impossible("only the author may remove a message of a group")
        chat.remove(post)
        return self._tell(post.bot, events.message_removed(chat, post, person, self._clock.now()))

    def _found(self, message_id: str) -> tuple[Chat, ChatPost]:
        place = places.find(self._world, message_id)
        if place is None:
            raise Impossible(f"message {message_id} not found")
        return place

    def add_bot(self, user_id: int, spec: Membership) -> Update:
        bot, person = self._bot(spec.token), self._stage.people.meet(user_id, spec)
        chat = self._world.chats.setdefault(("max", spec.chat_id), new_chat("max", spec.chat_id, spec.type))
        chat.state, chat.title = "ok", spec.title or chat.title
        return self._tell(bot, events.bot_added(chat, person, self._clock.now()))

    def remove_bot(self, user_id: int, spec: Membership) -> Update:
        bot, person = self._bot(spec.token), self._stage.people.meet(user_id, spec)
        chat = self._group(spec.chat_id)
        chat.state = "kicked"
        return self._tell(bot, events.bot_removed(chat, person, self._clock.now()))

    def _tell(self, bot: Bot, update: Update) -> Update:
        self._stage.updates.publish(bot, update)
        return update

    def _say(self, bot: Bot, person: Person, chat: Chat, text: str, shown: list[dict[str, Any]]) -> Update:
        now = self._clock.now()
        extra: dict[str, Any] = {"sender": person.shape(now)} | ({"attachments": shown} if shown else {})
        post = ChatPost(id=places.next_seq(chat, now), bot=bot, at=now, text=text, markup=[], buttons=[], extra=extra)
        chat.show(post)
        return self._tell(bot, events.message_created(chat, post, person, now))

    def _enclose(self, bot: Bot, file: Enclosed, origin: str) -> dict[str, Any]:
        checksum = hashlib.sha256(file.data).hexdigest()
        kept = self._stage.files.add(file.type, bot, file.name, sha256=checksum, data=file.data, size=len(file.data))
        return self._stage.attaching.show(kept, origin)

    def _bot(self, token: str | None) -> Bot:
        bots = [bot for (platform, _), bot in self._world.bots.items() if platform == "max"]
        if token is not None:
            bots = [bot for bot in bots if bot.fingerprint == as_fingerprint(token)]
        if len(bots) != 1:
            raise Impossible("`token` must be the token of a bot in MAX")
        return bots[0]

    def _dialog(self, person: Person, chat_id: int | None) -> Chat:
        known = [
            chat for chat in self._world.chats.values() if chat.platform == "max" and chat.user_id == person.user_id
        ]
        if known:
            return known[0]
        chat = new_chat("max", chat_id or other_side(person.user_id), "dialog")
        chat.user_id, chat.title = person.user_id, person.name
        self._world.chats["max", chat.id] = chat
        return chat

    def _group(self, chat_id: int) -> Chat:
        chat = self._world.chats.get(("max", chat_id))
        if chat is None:
            raise Impossible(f"chat {chat_id} not found")
        return chat


def _author(post: ChatPost) -> int | None:
    """``None``: a bot of the simulator."""
    sender = post.extra.get("sender")
    return sender["user_id"] if sender else None


def _button(post: ChatPost, text: str) -> dict[str, Any]:
    for keyboard in post.buttons:
        for row in keyboard["payload"]["buttons"]:
            for button in row:
                if button["text"] == text:
                    found: dict[str, Any] = button
                    return found
    raise Impossible(f"the message has no button {text!r}")
