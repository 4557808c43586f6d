"""Status tokens that open nothing are remembered for a second, so a flood of wrong ones leaves the database alone.

What opens something is asked for each time: a token that was revoked is refused at once. One that was tried before
it was issued works within a second.
"""

import time
from collections import OrderedDict
from datetime import timedelta

from autopost_monitor.status.access import Tokens
from autopost_monitor.status.gateway import Viewer

REMEMBERED = timedelta(seconds=1)
AT_MOST = 10_000


class Misses:
    """``Tokens``, with a memory for those that there are not."""

    def __init__(self, tokens: Tokens, remembered: timedelta = REMEMBERED) -> None:
        self._tokens = tokens
        self._remembered = remembered.total_seconds()
        self._unknown: OrderedDict[str, float] = OrderedDict()
        """By hash: until when it need not be asked for."""

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
