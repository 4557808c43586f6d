"""People who talk to bots in MAX."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from autopost_simulator.max import shapes


class PersonSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A missing field keeps its value."""

    first_name: str | UnsetType = UNSET
    last_name: str | UnsetType | None = UNSET
    username: str | UnsetType | None = UNSET
    locale: str | UnsetType = UNSET
    is_bot: bool | UnsetType = UNSET
    """A bot of somebody else, in a group."""


class Person(msgspec.Struct, kw_only=True):
    user_id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    locale: str = "ru"
    is_bot: bool = False

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}" if self.last_name else self.first_name

    def shape(self, now: datetime) -> dict[str, Any]:
        named = {"first_name": self.first_name, "last_name": self.last_name, "username": self.username}
        return {
            "user_id": self.user_id,
            **{name: value for name, value in named.items() if value is not None},
            "is_bot": self.is_bot,
            "last_activity_time": shapes.milliseconds(now),
            "name": self.name,
        }


class People:
    def __init__(self) -> None:
        self._by_id: dict[int, Person] = {}

    def meet(self, user_id: int, spec: PersonSpec) -> Person:
        person = self._by_id.setdefault(user_id, Person(user_id=user_id, first_name=f"Person {user_id}"))
        for name in ("first_name", "last_name", "username", "locale", "is_bot"):
            value = getattr(spec, name)
            if value is not UNSET:
                setattr(person, name, value)
        return person

    def clear(self) -> None:
        self._by_id.clear()
