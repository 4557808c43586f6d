"""Chats of a bot: info, changes, leaving, and actions such as typing."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max import places, shapes
from autopost_simulator.max.chats.pins import pin
from autopost_simulator.max.chats.roster import OWNER, Roster
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import payload
from autopost_simulator.world import Bot, Chat, World


class ChatAction(msgspec.Struct, frozen=True):
    action: Literal["typing_on", "sending_photo", "sending_video", "sending_audio", "sending_file", "mark_seen"]


class ChatPatch(msgspec.Struct, frozen=True):
    """A missing field keeps its value. The icon is accepted and not shown."""

    icon: dict[str, Any] | UnsetType | None = UNSET
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | UnsetType | None = UNSET
    description: Annotated[str, msgspec.Meta(max_length=400)] | UnsetType | None = UNSET
    pin: str | UnsetType | None = UNSET
    notify: bool | UnsetType | None = UNSET


class Chats:
    def __init__(self, world: World, clock: Clock, roster: Roster) -> None:
        self._world = world
        self._clock = clock
        self._roster = roster
        self._descriptions: dict[int, str] = {}
        self.table = {
            "/chats/{id}": {"GET": self.get, "PATCH": self.change},
            "/chats/{id}/members/me": {"GET": self.membership, "DELETE": self.leave},
            "/chats/{id}/actions": {"POST": self.act},
        }

    def get(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        return self._shape(places.chat_called(self._world, asked.path["id"]))

    def change(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat = self._open(asked)
        try:
            patch = msgspec.json.decode(asked.body or b"{}", type=ChatPatch)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise payload(str(error)) from None
        if chat.type == "dialog":
            raise payload("A dialog cannot be changed")  # words not observed
        if isinstance(patch.pin, str):
            done = pin(self._world, chat, patch.pin)
            if not done["success"]:
                return done
        chat.title = patch.title or chat.title
        if patch.description is not UNSET:
            self._descriptions[chat.id] = patch.description or ""
        return self._shape(chat)

    def membership(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat = places.chat_called(self._world, asked.path["id"])
        if chat.state != "no_rights":
            places.refuse_closed(chat)
        return shapes.membership(bot, chat, self._clock.now())

    def leave(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        self._open(asked).state = "not_member"
        return {"success": True}

    def act(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        self._open(asked)
        try:
            msgspec.json.decode(asked.body, type=ChatAction)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise payload(str(error)) from None
        return {"success": True}

    def clear(self) -> None:
        self._descriptions.clear()

    def _open(self, asked: OperationCall) -> Chat:
        chat = places.chat_called(self._world, asked.path["id"])
        places.refuse_closed(chat)
        return chat

    def _shape(self, chat: Chat) -> dict[str, Any]:
        """A group also tells who takes part, and when each was last there."""
        now = self._clock.now()
        shape = shapes.chat(chat, now)
        if chat.type == "dialog":
            return shape
        members = self._roster.of(chat, now)
        shape |= {"owner_id": OWNER, "participants_count": len(members) + 1}
        if chat.type == "chat":
            shape["participants"] = {str(user_id): shapes.milliseconds(now) for user_id in members}
        if description := self._descriptions.get(chat.id):
            shape["description"] = description
        pinned = chat.posts.get(chat.pinned[-1]) if chat.pinned else None
        return shape if pinned is None else shape | {"pinned_message": shapes.message(chat, pinned)}
