"""Find the bot of a token. Uploads belong to the bot, not to its token; a bot belongs to one workspace.

If the binding does not name the bot, it is found out before the first call and stored. A variable or a file may hold
another token than when it was bound, so there the bot is found out once per token, whatever the binding says.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from hashlib import sha256
from typing import Literal, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from autopost_adapters.base import Adapter
from autopost_contracts.outcomes import Category, Failed, Scope
from autopost_runtime.config.load import Secret
from autopost_runtime.postgres.pool import is_retryable
from autopost_runtime.secrets.credentials import Identity
from autopost_runtime.telemetry.logs import get_logger
from msgspec.structs import replace

from autopost_dispatcher.gateway import Claim
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
        self._certain: WeakKeyDictionary[Identity, str] = WeakKeyDictionary()

    def known(self, identity: Identity) -> str | None:
        """Without waiting."""
        return identity.bot_id if identity.is_sealed else self._certain.get(identity)

    async def identity(
        self, adapter: Adapter, claim: Claim, identity: Identity, before: Callable[[], Awaitable[None]]
    ) -> str | Failed | Released:
        """``Released``: the bot belongs to another workspace. ``before`` waits for a slot before the request."""
        if known := self.known(identity):
            return known
        found = await self._ask(adapter, identity.token, before)
        if isinstance(found, Failed):
            return _unidentified(found)
        if found != identity.bot_id and not await self._learn(claim, identity.rotated_at, found):
            return Released()
        self._certain[identity] = found
        return found

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

    async def _learn(self, claim: Claim, rotated_at: datetime, bot_id: str) -> bool:
        """Store the bot once per binding. False if it is taken, and while the database cannot store it."""
        key, value = (str(claim.workspace_id), claim.channel.platform, claim.channel.auth_ref), (rotated_at, bot_id)
        if self._learnt.get(key) == value:
            return True
        try:
            verdict = await self._bindings.learn_bot(claim, rotated_at, bot_id)
        except Exception as exc:
            if not is_retryable(exc):
                raise
            get_logger().warning("bot.not_learnt", error=type(exc).__name__, workspace_id=key[0], auth_ref=key[2])
            return False
        if verdict == "taken":
            get_logger().error("bot.taken", workspace_id=key[0], platform=key[1], auth_ref=key[2])
            return False
        if verdict == "ours":
            self._learnt[key] = value
        return True


def _unidentified(failed: Failed) -> Failed:
    """Keep the failure of a refused token. Any other failure of this request is retried: the post did not cause it."""
    if failed.category == Category.TRANSIENT or failed.code == "unauthorized":
        return failed
    return replace(failed, category=Category.TRANSIENT, scope=Scope.DELIVERY)
