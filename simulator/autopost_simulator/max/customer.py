"""Actions of people in MAX: start or stop a bot, write to it, press buttons, add it to a chat or remove it.

Every action becomes an update of the bot. A dialog has the person's id unless another
is given, and all bots share it.
"""

import hashlib
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
from autopost_simulator.world import Bot, Chat, ChatPost, ChatType, World, new_chat


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
        place = places.find(self._world, spec.message_id)
        if place is None:
            raise Impossible(f"message {spec.message_id} not found")
        chat, post = place
        button = _button(post, spec.button)
        if button["type"] == "message":
            return self._say(post.bot, person, chat, button["text"], [])
        if button["type"] != "callback":
            raise Impossible(f"a `{button['type']}` button sends nothing to the bot when it is pressed")
        callback = self._stage.callbacks.press(post.bot, user_id, spec.message_id, button["payload"])
        now = self._clock.now()
        return self._tell(post.bot, events.message_callback(chat, post, person, callback.id, callback.payload, now))

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
        chat = new_chat("max", chat_id or person.user_id, "dialog")
        chat.user_id, chat.title = person.user_id, person.name
        self._world.chats["max", chat.id] = chat
        return chat

    def _group(self, chat_id: int) -> Chat:
        chat = self._world.chats.get(("max", chat_id))
        if chat is None:
            raise Impossible(f"chat {chat_id} not found")
        return chat


def _button(post: ChatPost, text: str) -> dict[str, Any]:
    for keyboard in post.buttons:
        for row in keyboard["payload"]["buttons"]:
            for button in row:
                if button["text"] == text:
                    found: dict[str, Any] = button
                    return found
    raise Impossible(f"the message has no button {text!r}")
