"""Find the bot of a token. Uploads belong to the bot, not to its token; a bot belongs to one workspace.

If the binding does not name the bot, the platform is asked before the first call, and the answer is stored.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from hashlib import sha256
from typing import Literal, Protocol
from weakref import WeakValueDictionary

from autopost_adapters.base import Adapter
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_runtime.config.load import Secret
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.telemetry.logs import get_logger
from msgspec.structs import replace

from autopost_dispatcher.gateway import Claim
from autopost_dispatcher.send.credentials import Identity
from autopost_dispatcher.send.end_delivery import Released

Key = tuple[str, bytes]


class BotBindings(Protocol):
    async def learn_bot(
        self, claim: Claim, rotated_at: datetime, bot_id: str
    ) -> Literal["ours", "changed", "taken"]: ...


class Bots:
    def __init__(self, bindings: BotBindings) -> None:
        self._bindings = bindings
        self._known: dict[Key, str] = {}
        self._asking: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._learnt: dict[tuple[str, str, str], tuple[datetime, str]] = {}

    async def identity(
        self, adapter: Adapter, claim: Claim, identity: Identity, before: Callable[[], Awaitable[None]]
    ) -> str | Failed | Released:
        """``Released``: the bot belongs to another workspace. ``before`` waits for a slot before the request."""
        if identity.bot_id is not None:
            return identity.bot_id
        found = await self._ask(adapter, identity.token, before)
        if isinstance(found, Failed):
            return _unidentified(found)
        return await self._learn(claim, identity.rotated_at, found)

    async def _ask(self, adapter: Adapter, token: Secret, before: Callable[[], Awaitable[None]]) -> str | Failed:
        """One request per token."""
        key = (adapter.platform, sha256(token.reveal().encode()).digest())
        if found := self._known.get(key):
            return found
        lock = self._asking.setdefault(key, asyncio.Lock())
        async with lock:
            if found := self._known.get(key):
                return found
            if adapter.identifies_by_call:
                await before()
            answer = await adapter.identify(token)
            if not isinstance(answer, Failed):
                self._known[key] = answer
            return answer

    async def _learn(self, claim: Claim, rotated_at: datetime, bot_id: str) -> str | Released:
        """Store the bot once per binding. While the database is unavailable, nothing is sent for an unstored bot."""
        key, value = (str(claim.workspace_id), claim.channel.platform, claim.channel.auth_ref), (rotated_at, bot_id)
        if self._learnt.get(key) == value:
            return bot_id
        try:
            verdict = await self._bindings.learn_bot(claim, rotated_at, bot_id)
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("bot.not_learnt", error=type(exc).__name__, workspace_id=key[0], auth_ref=key[2])
            return Released()
        if verdict == "taken":
            get_logger().error("bot.taken", workspace_id=key[0], platform=key[1], auth_ref=key[2])
            return Released()
        if verdict == "ours":
            self._learnt[key] = value
        return bot_id


def _unidentified(failed: Failed) -> Failed:
    """Keep the failure of a refused token. Any other failure of this request is retried: the post did not cause it."""
    if failed.category == Category.TRANSIENT or failed.code == "unauthorized":
        return failed
    return replace(failed, category=Category.TRANSIENT, scope=Scope.DELIVERY)
