"""The bodies of ``POST /_sim/telegram/customers/{user_id}/…``."""

import msgspec

from autopost_simulator.telegram.standing import MediaKind, Role
from autopost_simulator.telegram.updates.people import TelegramPersonSpec
from autopost_simulator.world import ChatType


class Started(TelegramPersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``payload`` is the one of the link by which the person came."""

    payload: str | None = None


class SentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``data`` is base64."""

    kind: MediaKind
    name: str
    data: bytes


class Written(TelegramPersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without ``chat_id`` it goes to the private chat with the bot. ``text`` is the caption of a ``file``."""

    chat_id: int | None = None
    text: str = ""
    file: SentFile | None = None
    reply_to: int | None = None
    thread_id: int | None = None


class Edited(TelegramPersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    chat_id: int | None = None
    message_id: int
    text: str


class Pressed(TelegramPersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``button`` is the text of the button."""

    chat_id: int | None = None
    message_id: int
    button: str


class Joined(TelegramPersonSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``role`` is what the bot becomes in the chat; without it the default of the type."""

    chat_id: int
    title: str | None = None
    type: ChatType | None = None
    role: Role | None = None
