"""Read bodies: within the endpoint's limit, in time, and all of them together within a bounded memory."""

from datetime import timedelta

from aiohttp import web
from aiohttp.typedefs import Middleware
from autopost_runtime.web import Handler, Problem, read_limited

HELD = web.RequestKey("held", int)


class Bodies:
    def __init__(self, *, within: timedelta, idle: timedelta, memory: int) -> None:
        self._within = within
        self._idle = idle
        self._memory = memory
        self._held = 0

    async def read(self, request: web.Request, limit: int) -> bytes:
        """Raises ``Problem`` 400, 408, 413, 415, or 503 while others fill the memory."""
        refuse_other_types(request)
        self._hold(request, min(limit, request.content_length if request.content_length is not None else limit))
        return await read_limited(request, limit, self._within, self._idle)

    def _hold(self, request: web.Request, size: int) -> None:
        if self._held + size > self._memory:
            raise Problem(
                503, "Service Unavailable", "too much is coming in at once; try again", headers={"Retry-After": "1"}
            )
        self._held += size
        request[HELD] = request.get(HELD, 0) + size

    @property
    def middleware(self) -> Middleware:
        """Gives back what a request held once it is answered: its body lives on in what was made of it."""

        @web.middleware
        async def let_go(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            finally:
                self._held -= request.get(HELD, 0)

        return let_go


def refuse_other_types(request: web.Request) -> None:
    """No Content-Type at all is taken as JSON: many senders forget it."""
    if "Content-Type" not in request.headers:
        return
    kind, charset = request.content_type, (request.charset or "utf-8").lower()
    json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not json or charset not in ("utf-8", "utf8"):
        raise Problem(
            415, "Unsupported Media Type", "expected application/json, in UTF-8 where it says so", field="Content-Type"
        )
