"""All MAX operations by path and method, with authorization."""

from collections.abc import Callable
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import ProviderCall
from autopost_simulator.limits import Windows
from autopost_simulator.max.chats.members import ChatMembers
from autopost_simulator.max.chats.pins import ChatPins
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import MaxRateLimited, named
from autopost_simulator.max.state import MaxState
from autopost_simulator.max.upload.uploads import UploadOperations
from autopost_simulator.max.upload.videos import Videos
from autopost_simulator.world import Bot, World

Operation = Callable[[Bot, OperationCall, ProviderCall], Any]


class Operations:
    def __init__(self, world: World, windows: Windows, clock: Clock, state: MaxState) -> None:
        self._world = world
        self._windows = windows
        self._updates = state.updates
        self.table: dict[str, dict[str, Operation]] = {
            **state.chats.table,
            **state.profiles.table,
            **ChatPins(world).table,
            **ChatMembers(world, clock, state.roster).table,
            **Videos(state.files).table,
            **state.messages.table,
            **UploadOperations(state.uploads).table,
            **state.updates.table,
            **state.callbacks.table,
        }

    def admit(self, token: str) -> Bot:
        """MAX counts every request of a bot, not only messages."""
        bot = self._known(token)
        if bot is None:
            raise named("verify_token")
        if self._windows.take((("max", token), bot.limits)):
            raise MaxRateLimited
        return bot

    async def wait(self, token: str, operation: Operation | None, asked: OperationCall) -> None:
        """Long polling: only ``GET /updates`` waits."""
        bot = self._known(token)
        if bot is not None and operation == self._updates.poll:
            await self._updates.wait(bot, asked)

    def _known(self, token: str) -> Bot | None:
        return None if any(map(str.isspace, token)) or not token else self._world.bot("max", token)
