"""Cache unknown status tokens for one second, so that a flood of wrong tokens does not reach the database.

Valid tokens are not cached: a revoked token is refused at once. A token that was tried before it was issued works
after a second.
"""

import time
from collections import OrderedDict
from datetime import timedelta

from autopost_monitor.status.access import Tokens
from autopost_monitor.status.gateway import Viewer

REMEMBERED = timedelta(seconds=1)
AT_MOST = 10_000


class Misses:
    """``Tokens`` with a negative cache."""

    def __init__(self, tokens: Tokens, remembered: timedelta = REMEMBERED) -> None:
        self._tokens = tokens
        self._remembered = remembered.total_seconds()
        self._unknown: OrderedDict[str, float] = OrderedDict()
        """By token hash: the end of the cache entry."""

    async def resolve_status_token(self, token_hash: str) -> Viewer | None:
        asked = time.monotonic()
        if asked < self._unknown.get(token_hash, 0.0):
            return None
        found = await self._tokens.resolve_status_token(token_hash)
        self._unknown.pop(token_hash, None)
        if found is None:
            self._unknown[token_hash] = asked + self._remembered
            if len(self._unknown) > AT_MOST:
                self._unknown.popitem(last=False)
        return found
