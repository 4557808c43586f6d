"""Which bot a token is of. What a platform holds of our media belongs to the bot, whatever its token is today."""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from weakref import WeakValueDictionary

from autopost_adapters.base import Adapter
from autopost_contracts.outcomes import Failed
from autopost_runtime.config import Secret


class Bots:
    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], str] = {}
        self._asking: WeakValueDictionary[tuple[str, bytes], asyncio.Lock] = WeakValueDictionary()

    async def identity(self, adapter: Adapter, token: Secret, before: Callable[[], Awaitable[None]]) -> str | Failed:
        """Asked of the platform once per token; ``before`` waits until that call may be made."""
        key = (adapter.platform, sha256(token.reveal().encode()).digest())
        if found := self._known.get(key):
            return found
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            if found := self._known.get(key):
                return found
            await before()
            answer = await adapter.identify(token)
            if not isinstance(answer, Failed):
                self._known[key] = answer
            return answer
