"""How a bot stands in a Telegram chat: its role, what it may not send, and the topics of a forum."""

from typing import Literal

import msgspec

Kind = Literal["text", "photo", "video", "document", "audio", "animation"]
MediaKind = Literal["photo", "video", "document", "audio", "animation"]
Role = Literal["member", "administrator"]


class Topic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thread of a forum; General is always there, has the id 1 and is not listed."""

    id: int
    name: str = ""
    closed: bool = False

    def __post_init__(self) -> None:
        if self.id <= 1:
            raise ValueError("`id` of a topic must be greater than 1, which is General")
