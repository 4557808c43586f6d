"""People who talk to bots in Telegram."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class TelegramPersonSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A missing field keeps its value. ``token`` names the bot; it may be omitted when there is only one."""

    token: str | None = None
    first_name: str | UnsetType = UNSET
    last_name: str | UnsetType | None = UNSET
    username: str | UnsetType | None = UNSET
    language_code: str | UnsetType | None = UNSET


class TelegramPerson(msgspec.Struct, kw_only=True):
    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    language_code: str | None = "ru"

    def shape(self) -> dict[str, Any]:
        optional = {name: getattr(self, name) for name in ("last_name", "username", "language_code")}
        known = {name: value for name, value in optional.items() if value is not None}
        return {"id": self.id, "is_bot": False, "first_name": self.first_name} | known


class TelegramPeople:
    def __init__(self) -> None:
        self._by_id: dict[int, TelegramPerson] = {}

    def meet(self, user_id: int, spec: TelegramPersonSpec) -> TelegramPerson:
        person = self._by_id.setdefault(user_id, TelegramPerson(id=user_id, first_name=f"Person {user_id}"))
        for name in ("first_name", "last_name", "username", "language_code"):
            value = getattr(spec, name)
            if value is not UNSET:
                setattr(person, name, value)
        return person

    def clear(self) -> None:
        self._by_id.clear()
