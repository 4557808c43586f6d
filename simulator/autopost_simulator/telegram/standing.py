"""The membership of a bot in a Telegram chat: its role, its restrictions, and forum topics."""

from typing import Literal

import msgspec

Kind = Literal["text", "photo", "video", "document", "audio", "animation", "voice", "sticker", "poll", "location"]
MediaKind = Literal["photo", "video", "document", "audio", "animation", "voice", "sticker"]
Role = Literal["member", "administrator"]


class Topic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thread of a forum; General always exists, has the id 1 and is not listed."""

    id: int
    name: str = ""
    closed: bool = False

    def __post_init__(self) -> None:
        if self.id <= 1:
            raise ValueError("`id` of a topic must be greater than 1, which is General")
