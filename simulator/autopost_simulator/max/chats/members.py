"""Members and administrators of a chat: listed, added, removed."""

from typing import Any

import msgspec

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max import places
from autopost_simulator.max.chats.roster import OWNER, Roster, RosterEntry
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import payload
from autopost_simulator.max.shapes import PERMISSIONS
from autopost_simulator.world import Bot, Chat, World

MOST_ADMINISTRATORS = 50
ALL_PERMISSIONS = frozenset((*PERMISSIONS, "add_admins", "can_call", "post_edit_delete_message"))


class UserIds(msgspec.Struct, frozen=True):
    user_ids: list[int]


class NewAdministrator(msgspec.Struct, frozen=True):
    user_id: int
    permissions: list[str]
    alias: str | None = None


class NewAdministrators(msgspec.Struct, frozen=True):
    admins: list[NewAdministrator]
    marker: int | None = None


class ChatMembers:
    def __init__(self, world: World, clock: Clock, roster: Roster) -> None:
        self._world = world
        self._clock = clock
        self._roster = roster
        self.table = {
            "/chats/{id}/members": {"GET": self.list_members, "POST": self.add, "DELETE": self.remove},
            "/chats/{id}/members/admins": {"GET": self.list_administrators, "POST": self.appoint},
            "/chats/{id}/members/admins/{user_id}": {"DELETE": self.dismiss},
        }

    def list_members(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        """``marker`` is the number of members that were listed before."""
        chat = self._open(asked)
        everybody = self._roster.everybody(bot, chat, self._clock.now())
        if wanted := asked.query.get("user_ids"):
            return {"members": [one for one in everybody if str(one["user_id"]) in wanted.split(",")]}
        first, count = asked.integer("marker") or 0, min(max(asked.integer("count") or 20, 1), 100)
        marker = {"marker": first + count} if first + count < len(everybody) else {}
        return {"members": everybody[first : first + count]} | marker

    def list_administrators(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        everybody = self._roster.everybody(bot, self._open(asked), self._clock.now())
        return {"members": [one for one in everybody if one["is_admin"]]}

    def add(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat, body = self._open(asked), _decode(asked.body, UserIds)
        members = self._roster.of(chat, self._clock.now())
        for user_id in body.user_ids:
            members.setdefault(user_id, RosterEntry(self._clock.now()))
        return {"success": True}

    def remove(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat, user_id = self._open(asked), asked.integer("user_id")
        members = self._roster.of(chat, self._clock.now())
        if user_id is None:
            raise payload("user_id: must be a number")
        if user_id == OWNER or members.pop(user_id, None) is None:
            return {"success": False, "message": f"User {user_id} cannot be removed"}
        return {"success": True}

    def appoint(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        chat, body = self._open(asked), _decode(asked.body, NewAdministrators)
        if len(body.admins) > MOST_ADMINISTRATORS:
            raise payload(f"admins: size must be between 0 and {MOST_ADMINISTRATORS}")
        members = self._roster.of(chat, self._clock.now())
        for admin in body.admins:
            unknown = [name for name in admin.permissions if name not in ALL_PERMISSIONS]
            if unknown:
                raise payload(f"permissions: `{unknown[0]}` is unknown")
            if admin.user_id not in members:
                return {"success": False, "message": f"User {admin.user_id} is not a member"}
            members[admin.user_id].permissions = admin.permissions
        return {"success": True}

    def dismiss(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        members = self._roster.of(self._open(asked), self._clock.now())
        given = asked.path["user_id"]
        entry = members.get(int(given)) if given.isdigit() else None
        if entry is None or entry.permissions is None or int(given) == OWNER:
            return {"success": False, "message": f"User {given} is not an administrator"}
        entry.permissions = None
        return {"success": True}

    def _open(self, asked: OperationCall) -> Chat:
        chat = places.chat_called(self._world, asked.path["id"])
        places.refuse_closed(chat)
        return chat


def _decode(raw: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise payload(str(error)) from None
