"""Who is in a chat: its owner, the bots that act in it, and people who were added."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from autopost_simulator.max import shapes
from autopost_simulator.max.people import People, PersonSpec
from autopost_simulator.world import Bot, Chat

OWNER = 777


@dataclass(slots=True)
class RosterEntry:
    joined: datetime
    permissions: list[str] | None = None
    """``None`` for a member who is no administrator."""


@dataclass(slots=True)
class Roster:
    people: People
    _by_chat: dict[int, dict[int, RosterEntry]] = field(default_factory=dict)

    def of(self, chat: Chat, now: datetime) -> dict[int, RosterEntry]:
        """The owner is there from the beginning; a dialog has the person instead."""
        first = chat.user_id or OWNER
        permissions = None if chat.type == "dialog" else shapes.PERMISSIONS
        return self._by_chat.setdefault(chat.id, {first: RosterEntry(now, permissions)})

    def shown(self, chat: Chat, user_id: int, now: datetime) -> dict[str, Any]:
        entry = self.of(chat, now)[user_id]
        person = self.people.meet(user_id, PersonSpec())
        shape = person.shape(now) | {
            "last_access_time": shapes.milliseconds(now),
            "join_time": shapes.milliseconds(entry.joined),
            "is_owner": user_id == OWNER,
            "is_admin": entry.permissions is not None,
        }
        return shape | ({} if entry.permissions is None else {"permissions": entry.permissions})

    def everybody(self, bot: Bot, chat: Chat, now: datetime) -> list[dict[str, Any]]:
        people = [self.shown(chat, user_id, now) for user_id in self.of(chat, now)]
        return [shapes.membership(bot, chat, now), *people]

    def clear(self) -> None:
        self._by_chat.clear()
