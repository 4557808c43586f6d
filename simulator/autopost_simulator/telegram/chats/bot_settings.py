"""The commands of a bot, and ``logOut`` and ``close``."""

import re
from typing import Any

import msgspec

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.world import Bot

MOST_COMMANDS = 100
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_LONGEST_DESCRIPTION = 256

Key = tuple[str, str, str]


class BotSettings:
    def __init__(self) -> None:
        self._commands: dict[Key, list[dict[str, str]]] = {}
        self._logged_out: set[str] = set()
        self.table = (
            ("setMyCommands", self.set_commands),
            ("getMyCommands", self.get_commands),
            ("deleteMyCommands", self.delete_commands),
            ("logOut", self.log_out),
            ("close", self.close),
        )

    def refuse_logged_out(self, bot: Bot) -> None:
        if bot.token in self._logged_out:
            raise TelegramError(400, "Logged out")

    def set_commands(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        self._commands[_key(bot, params)] = _read_commands(params)
        return True

    def get_commands(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return self._commands.get(_key(bot, params), [])

    def delete_commands(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        self._commands.pop(_key(bot, params), None)
        return True

    def log_out(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """Afterwards the cloud server refuses the bot for ten minutes; here until a reset."""
        self._logged_out.add(bot.token)
        return True

    def close(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return True

    def clear(self) -> None:
        self._commands.clear()
        self._logged_out.clear()


def _key(bot: Bot, params: Params) -> Key:
    try:
        scope = params.structure("scope")
    except msgspec.DecodeError:
        raise _bad("can't parse BotCommandScope JSON object") from None
    wanted = msgspec.json.encode(scope or {"type": "default"}, order="sorted").decode()
    return bot.token, wanted, params.text("language_code")


def _read_commands(params: Params) -> list[dict[str, str]]:
    try:
        given = params.structure("commands") if params.text("commands") else []
    except msgspec.DecodeError:
        raise _bad("can't parse commands JSON object") from None
    if given is None:
        return []
    if not isinstance(given, list):
        raise _bad("expected an Array of BotCommand")
    commands = [_command(one) for one in given]
    if len(commands) > MOST_COMMANDS:
        raise _bad("BOT_COMMANDS_TOO_MUCH")
    return commands


def _command(given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        raise _bad("can't parse BotCommand: expected an Object")
    for name in ("command", "description"):
        if name not in given:
            raise _bad(f"can't parse BotCommand: Can't find field \"{name}\"")
        if not isinstance(given[name], str):
            raise _bad(f'can\'t parse BotCommand: Field "{name}" must be of type String')
    command, description = given["command"].strip().removeprefix("/"), given["description"].strip()
    if not _COMMAND.fullmatch(command):
        raise _bad("BOT_COMMAND_INVALID")
    if not 1 <= len(description) <= _LONGEST_DESCRIPTION:
        raise _bad("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": command, "description": description}


def _bad(reason: str) -> TelegramError:
    return TelegramError(400, f"Bad Request: {reason}")
