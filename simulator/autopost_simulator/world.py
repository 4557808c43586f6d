"""The state of the simulated platforms: bots by token, chats and their messages."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from autopost_simulator.fingerprint import fingerprint
from autopost_simulator.journal import Platform
from autopost_simulator.limits import Limit
from autopost_simulator.telegram.standing import Kind, Role, Topic

ChatType = Literal["channel", "supergroup", "group", "private", "chat", "dialog"]
TelegramOnly = Literal["deleted", "unknown", "not_started", "read_only", "write_forbidden"]
ChatState = Literal["ok", "kicked", "not_member", "no_rights", "blocked", "not_found", TelegramOnly]
BotState = Literal["ok", "revoked"]

POSTS_KEPT = 10_000

TOKEN_LIMITS: dict[Platform, tuple[Limit, ...]] = {
    "telegram": (Limit(30, 1.0),),
    "max": (Limit(30, 1.0),),
}
CHAT_LIMITS: dict[ChatType, tuple[Limit, ...]] = {
    "channel": (Limit(1, 1.0),),
    "private": (Limit(1, 1.0),),
    "group": (Limit(1, 1.0), Limit(20, 60.0)),
    "supergroup": (Limit(1, 1.0), Limit(20, 60.0)),
}
MAX_CHAT_LIMITS = (Limit(2, 1.0),)

_SIDE = 1 << 40


@dataclass(slots=True, kw_only=True)
class Bot:
    platform: Platform
    token: str = field(repr=False)
    id: int
    name: str
    username: str
    state: BotState = "ok"
    limits: tuple[Limit, ...]

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.token)


@dataclass(slots=True, frozen=True, kw_only=True)
class ChatPost:
    """``markup``, ``buttons`` and the fields in ``extra`` have the form of their platform.

    A Telegram message with media has its fields there (``photo``, ``video``, …) and also ``media``, a list
    of what it shows: kind, file_unique_id, url of the bytes, sha256, size, content_type, name and dimensions.
    """

    id: int
    bot: Bot
    at: datetime
    text: str | None
    markup: list[dict[str, Any]]
    buttons: Any
    extra: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Chat:
    """Only Telegram has ``role`` (``None``: the default of the type), ``forbids``, ``topics`` (``None``: no forum)
    and ``migrated_to``.
    """

    platform: Platform
    id: int
    type: ChatType
    title: str
    username: str | None = None
    user_id: int | None = None
    state: ChatState = "ok"
    limits: tuple[Limit, ...]
    role: Role | None = None
    forbids: tuple[Kind, ...] = ()
    topics: tuple[Topic, ...] | None = None
    migrated_to: int | None = None
    pinned: list[int] = field(default_factory=list)
    posts: dict[int, ChatPost] = field(default_factory=dict)
    removed: dict[int, ChatPost] = field(default_factory=dict)
    """Still on the screen of somebody, who may press their buttons."""
    last_id: int = 0

    def show(self, post: ChatPost) -> None:
        self.posts[post.id] = post
        self.last_id = max(self.last_id, post.id)
        if len(self.posts) > POSTS_KEPT:
            del self.posts[next(iter(self.posts))]

    def remove(self, post: ChatPost) -> None:
        del self.posts[post.id]
        self.removed[post.id] = post
        if len(self.removed) > POSTS_KEPT:
            del self.removed[next(iter(self.removed))]


class World:
    """``open_to_all``: unknown tokens and chats are created at first use."""

    def __init__(self, *, open_to_all: bool) -> None:
        self._open = open_to_all
        self.bots: dict[tuple[Platform, str], Bot] = {}
        self.chats: dict[tuple[Platform, int], Chat] = {}

    def bot(self, platform: Platform, token: str) -> Bot | None:
        bot = self.bots.get((platform, token))
        if bot is None and self._open:
            bot = self.bots[platform, token] = new_bot(platform, token)
        return bot if bot is not None and bot.state == "ok" else None

    def chat(self, platform: Platform, chat_id: int) -> Chat | None:
        chat = self.chats.get((platform, chat_id))
        if chat is None and self._open:
            chat = self.chats[platform, chat_id] = new_chat(platform, chat_id)
        return chat if chat is not None and chat.state != "not_found" else None

    def chat_by_username(self, platform: Platform, username: str) -> Chat | None:
        wanted = username.removeprefix("@").lower()
        for chat in self.chats.values():
            if chat.platform == platform and (chat.username or "").lower() == wanted:
                return chat if chat.state != "not_found" else None
        if not self._open:
            return None
        chat = new_chat(platform, named_chat_id(wanted))
        chat.username = username.removeprefix("@")
        self.chats[platform, chat.id] = chat
        return chat

    def dialog(self, user_id: int) -> Chat | None:
        """The MAX chat with one person, who has another number than the chat."""
        for chat in self.chats.values():
            if chat.platform == "max" and chat.user_id == user_id:
                return chat if chat.state != "not_found" else None
        return self.chat("max", other_side(user_id)) if self._open and user_id > 0 else None

    def clear(self) -> None:
        self.bots.clear()
        self.chats.clear()


def new_bot(platform: Platform, token: str) -> Bot:
    print_ = fingerprint(token)
    return Bot(
        platform=platform,
        token=token,
        id=bot_id(token),
        name=f"Bot {print_}",
        username=f"sim_{print_}_bot",
        limits=TOKEN_LIMITS[platform],
    )


def bot_id(token: str) -> int:
    """A Telegram token starts with the bot's id; a MAX token does not contain it."""
    head = token.partition(":")[0]
    return int(head) if head.isascii() and head.isdigit() else int(fingerprint(token), 16)


def named_chat_id(username: str) -> int:
    return -1_000_000_000_000 - int(fingerprint(username), 16)


def new_chat(platform: Platform, chat_id: int, type_: ChatType | None = None) -> Chat:
    type_ = type_ or likely_type(platform, chat_id)
    return Chat(
        platform=platform,
        id=chat_id,
        type=type_,
        title=f"{type_} {chat_id}",
        user_id=other_side(chat_id) if type_ == "dialog" else None,
        limits=default_limits(platform, type_),
    )


def other_side(number: int) -> int:
    """The number of the dialog with a person, and of the person in a dialog: never equal, as in MAX."""
    return number ^ _SIDE


def likely_type(platform: Platform, chat_id: int) -> ChatType:
    if platform == "max":
        return "channel" if chat_id < 0 else "dialog"
    if chat_id > 0:
        return "private"
    return "channel" if str(chat_id).startswith("-100") else "group"


def default_limits(platform: Platform, type_: ChatType) -> tuple[Limit, ...]:
    return MAX_CHAT_LIMITS if platform == "max" else CHAT_LIMITS[type_]
