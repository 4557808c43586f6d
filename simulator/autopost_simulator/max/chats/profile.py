"""The profile of a bot: its name, description and commands."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max import shapes
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import payload
from autopost_simulator.world import Bot

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class MaxCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    name: Name
    description: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None


Commands = Annotated[list[MaxCommand], msgspec.Meta(max_length=32)]


class ProfilePatch(msgspec.Struct, frozen=True):
    """A missing field keeps its value."""

    first_name: Name | UnsetType | None = UNSET
    last_name: Name | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    description: Annotated[str, msgspec.Meta(max_length=16000)] | UnsetType | None = UNSET
    commands: Commands | UnsetType | None = UNSET
    photo: dict[str, Any] | UnsetType | None = UNSET


class CommandsPatch(msgspec.Struct, frozen=True):
    commands: Commands


class Profiles:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._commands: dict[str, list[MaxCommand]] = {}
        self._descriptions: dict[str, str] = {}
        self.table = {
            "/me": {"GET": self.get, "PATCH": self.change},
            "/me/commands": {"PATCH": self.change_commands},
        }

    def get(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        commands = self._commands.get(bot.token)
        shown = {"description": self._descriptions.get(bot.token, "")}
        return shapes.user(bot, self._clock.now()) | shown | ({"commands": commands} if commands else {})

    def change(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        patch = _decode(asked.body, ProfilePatch)
        name = patch.first_name or patch.name
        if name:
            bot.name = name
        if patch.description is not UNSET:
            self._descriptions[bot.token] = patch.description or ""
        if patch.commands is not UNSET:
            self._commands[bot.token] = patch.commands or []
        return self.get(bot, asked, call)

    def change_commands(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        self._commands[bot.token] = _decode(asked.body, CommandsPatch).commands
        return self.get(bot, asked, call)

    def clear(self) -> None:
        self._commands.clear()
        self._descriptions.clear()


def _decode(raw: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise payload(str(error)) from None
