"""Register tokens and chats from a request or a state file; repeating it changes nothing."""

from typing import Any, get_args

import msgspec
from msgspec import UNSET, UnsetType

from autopost_simulator.journal import Platform
from autopost_simulator.limits import Limit
from autopost_simulator.telegram.standing import Kind, Role, Topic
from autopost_simulator.world import (
    Bot,
    BotState,
    Chat,
    ChatState,
    ChatType,
    TelegramOnly,
    World,
    default_limits,
    likely_type,
    new_bot,
    new_chat,
)

CHAT_TYPES: dict[Platform, tuple[ChatType, ...]] = {
    "telegram": ("channel", "supergroup", "group", "private"),
    "max": ("channel", "chat", "dialog"),
}
_PLACES_ONLY = ("kicked", "not_member", "no_rights", "read_only", "write_forbidden")
_STANDING = ("role", "forbids", "topics", "migrated_to")


class TokenSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A missing field keeps its value; a new chat gets the default of the platform."""

    platform: Platform
    token: str
    name: str | UnsetType = UNSET
    username: str | UnsetType = UNSET
    state: BotState | UnsetType = UNSET
    limits: tuple[Limit, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not self.token or any(character.isspace() for character in self.token):
            raise ValueError("`token` must not contain spaces")


class ChatSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    platform: Platform
    id: int | str
    type: ChatType | UnsetType = UNSET
    title: str | UnsetType = UNSET
    username: str | UnsetType = UNSET
    user_id: int | UnsetType = UNSET
    state: ChatState | UnsetType = UNSET
    limits: tuple[Limit, ...] | UnsetType = UNSET
    role: Role | UnsetType = UNSET
    forbids: tuple[Kind, ...] | UnsetType = UNSET
    topics: tuple[Topic, ...] | UnsetType | None = UNSET
    migrated_to: int | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        try:
            int(self.id)
        except ValueError:
            raise ValueError("`id` must be a whole number, as a number or as text") from None
        if self.type is not UNSET and self.type not in CHAT_TYPES[self.platform]:
            raise ValueError(f"`type` {self.type!r} does not exist in {self.platform}: {CHAT_TYPES[self.platform]}")
        if self.platform == "telegram":
            self._check_telegram(private=int(self.id) > 0)
            self._check_standing()
        elif self.state in get_args(TelegramOnly) or self._standing_given():
            raise ValueError("MAX chats have no `role`, `forbids`, `topics` or `migrated_to`, and not this `state`")

    def _check_telegram(self, *, private: bool) -> None:
        """Only a person can block a bot, and only a chat with members can remove it."""
        if self.type is not UNSET and (self.type == "private") != private:
            raise ValueError(f"`type` {self.type!r} does not go with `id` {self.id}: people have positive ids")
        of_places, of_people = _PLACES_ONLY, ("blocked", "unknown", "not_started")
        if self.state in (of_places if private else of_people):
            raise ValueError(f"`state` {self.state!r} does not go with `id` {self.id}: people have positive ids")

    def _check_standing(self) -> None:
        """Topics exist in supergroups only; only basic groups are upgraded or deleted for good."""
        type_ = likely_type("telegram", int(self.id)) if self.type is UNSET else self.type
        if self.topics not in (UNSET, None) and type_ != "supergroup":
            raise ValueError("`topics` need `type` 'supergroup'")
        if self.migrated_to not in (UNSET, None) and type_ != "group":
            raise ValueError("`migrated_to` needs `type` 'group'")
        if self.state == "deleted" and type_ not in ("group", "private"):
            raise ValueError("`state` 'deleted' needs `type` 'group' or 'private'")

    def _standing_given(self) -> bool:
        return any(getattr(self, name) is not UNSET for name in _STANDING)


class StartState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tokens: tuple[TokenSpec, ...] = ()
    chats: tuple[ChatSpec, ...] = ()


def register_token(world: World, spec: TokenSpec) -> dict[str, Any]:
    key = (spec.platform, spec.token)
    bot = world.bots.setdefault(key, new_bot(*key))
    _assign(bot, spec, ("name", "username", "state", "limits"))
    return describe_bot(bot)


def describe_bot(bot: Bot) -> dict[str, Any]:
    return {
        "platform": bot.platform,
        "token": bot.fingerprint,
        "name": bot.name,
        "username": bot.username,
        "state": bot.state,
        "limits": bot.limits,
    }


def register_chat(world: World, spec: ChatSpec) -> dict[str, Any]:
    key = (spec.platform, int(spec.id))
    chat = world.chats.get(key) or new_chat(*key, None if spec.type is UNSET else spec.type)
    if spec.type is not UNSET and spec.type != chat.type:
        chat.type = spec.type
        chat.limits = default_limits(chat.platform, chat.type)
    _assign(chat, spec, ("title", "username", "user_id", "state", "limits", *_STANDING))
    world.chats[key] = chat
    return describe(chat)


def describe(chat: Chat) -> dict[str, Any]:
    return {
        "platform": chat.platform,
        "id": str(chat.id),
        "type": chat.type,
        "title": chat.title,
        "username": chat.username,
        "user_id": chat.user_id,
        "state": chat.state,
        "limits": chat.limits,
        "messages": len(chat.posts),
    }


def _assign(target: object, spec: msgspec.Struct, names: tuple[str, ...]) -> None:
    for name in names:
        value = getattr(spec, name)
        if value is not UNSET:
            setattr(target, name, value)
