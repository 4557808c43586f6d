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
        self._storing: set[asyncio.Task[bool]] = set()

    async def keep(self, claim: Claim, failure: Failed) -> str | None:
        """The reference to put into the event; ``None`` when nothing was kept.

        A platform that asks for silence is obeyed first: its answer is stored while the wait is committed.
        """
        if self._store is None or not failure.raw:
            return None
        key = f"{claim.workspace_id}/answers/{claim.delivery_id}/{claim.attempt}.json"
        storing = asyncio.create_task(self._put(self._store, key, msgspec.json.encode(failure.raw)))
        if failure.retry_after_ms is None:
            return key if await storing else None
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        return key

    async def flush(self) -> None:
        """Returns when nothing is being stored; nothing is for long."""
        await asyncio.gather(*self._storing)

    async def _put(self, store: Store, key: str, body: bytes) -> bool:
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await store.put(key, body, "application/json")
        except Exception as exc:
            get_logger().warning("answer.not_kept", error=type(exc).__name__, key=key)
            return False
        return True
