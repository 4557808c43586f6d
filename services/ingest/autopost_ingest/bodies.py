"""Read bodies: within the endpoint's limit, in time, and all of them together within a bounded memory."""

from collections.abc import Awaitable
from datetime import timedelta
from functools import partial

from aiohttp import web
from aiohttp.typedefs import Middleware
from autopost_runtime.http_server import Handler
from autopost_runtime.web import Problem, read_limited

from autopost_ingest.crowds import EIGHTH, Held, Holder, Shares

LIMIT_BY_DEFAULT = 256 * 1024
"""Of an endpoint."""

HELD = web.RequestKey("held", Held)


class Bodies:
    def __init__(self, *, within: timedelta, idle: timedelta, memory: int) -> None:
        self._within = within
        self._idle = idle
        self._shares = Shares(memory)
        self.limit_of_unproven = max(memory // EIGHTH, LIMIT_BY_DEFAULT)
        """For who has not shown yet that an endpoint is his: the same for all, or it would tell which ids there are.
        A single body fills no more than the part of its holder."""

    def read(self, request: web.Request, limit: int, holder: Holder) -> Awaitable[bytes]:
        """Raises ``Problem`` 400, 408, 413, 415, or ``Crowded`` while the memory or the holder's part of it is full."""
        refuse_other_types(request)
        held = request[HELD] = Held(holder)
        return read_limited(request, limit, self._within, self._idle, take=partial(self._shares.take, held))

    def hand_over(self, request: web.Request, holder: Holder) -> None:
        """A body that was read is known to be somebody else's. Raises ``Crowded``."""
        held, size = request[HELD], request[HELD].size
        self._shares.give_back(held)
        held.holder = holder
        self._shares.take(held, size)

    @property
    def middleware(self) -> Middleware:
        """Gives back what a request held once it is answered: its body lives on in what was made of it."""

        @web.middleware
        async def let_go(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            finally:
                if HELD in request:
                    self._shares.give_back(request[HELD])

        return let_go


def refuse_other_types(request: web.Request) -> None:
    """No Content-Type at all is taken as JSON: many senders forget it."""
    said = request.headers.get("Content-Type")
    if said is None or said == "application/json":
        return
    kind, charset = request.content_type, (request.charset or "utf-8").lower()
    json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not json or charset not in ("utf-8", "utf8"):
        raise Problem(
            415, "Unsupported Media Type", "expected application/json, in UTF-8 where it says so", field="Content-Type"
        )
