"""Keep what a provider really answered when a send did not end well; events hold only a snippet.

Best effort: an object store that is away costs the copy, never the delivery.
"""

import asyncio
from datetime import timedelta
from typing import Protocol

import msgspec
from autopost_contracts.outcomes import Failed
from autopost_runtime.logs import get_logger

from autopost_dispatcher.gateway import Claim

PATIENCE = timedelta(seconds=2)


class Store(Protocol):
    async def put(self, key: str, body: bytes, content_type: str) -> None: ...


class Answers:
    def __init__(self, store: Store | None) -> None:
        self._store = store

    async def keep(self, claim: Claim, failure: Failed) -> str | None:
        """The reference to put into the event; ``None`` when nothing was kept."""
        if self._store is None or not failure.raw:
            return None
        key = f"{claim.workspace_id}/answers/{claim.delivery_id}/{claim.attempt}.json"
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await self._store.put(key, msgspec.json.encode(failure.raw), "application/json")
        except Exception as exc:
            get_logger().warning("answer.not_kept", error=type(exc).__name__, delivery_id=str(claim.delivery_id))
            return None
        return key
