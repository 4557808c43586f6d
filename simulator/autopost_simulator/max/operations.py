"""Every MAX operation by path and verb, and who may use them."""

from collections.abc import Callable
from typing import Any

from autopost_simulator.clock import Clock
from autopost_simulator.exchange import Call
from autopost_simulator.limits import Windows
from autopost_simulator.max.asked import Asked
from autopost_simulator.max.backstage import Backstage
from autopost_simulator.max.chats import Chats
from autopost_simulator.max.refusal import RateLimited, named
from autopost_simulator.max.uploads import UploadOperations
from autopost_simulator.world import Bot, World

Operation = Callable[[Bot, Asked, Call], Any]


class Operations:
    def __init__(self, world: World, windows: Windows, clock: Clock, backstage: Backstage) -> None:
        self._world = world
        self._windows = windows
        self._updates = backstage.updates
        self.table: dict[str, dict[str, Operation]] = {
            **Chats(world, clock).table,
            **backstage.messages.table,
            **UploadOperations(backstage.uploads).table,
            **backstage.updates.table,
            **backstage.callbacks.table,
        }

    def admit(self, token: str) -> Bot:
        """MAX counts every request of a bot, not only messages."""
        bot = self._known(token)
        if bot is None:
            raise named("verify_token")
        if self._windows.take((("max", token), bot.limits)):
            raise RateLimited
        return bot

    async def wait(self, token: str, operation: Operation | None, asked: Asked) -> None:
        """Long polling: only the question for updates waits before it is answered."""
        bot = self._known(token)
        if bot is not None and operation == self._updates.poll:
            await self._updates.wait(bot, asked)

    def _known(self, token: str) -> Bot | None:
        return None if any(map(str.isspace, token)) or not token else self._world.bot("max", token)
