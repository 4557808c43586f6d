"""Read request bodies within the size limit of the endpoint, a time limit and a memory limit for all of them."""

from collections.abc import Awaitable
from datetime import timedelta
from functools import partial

from aiohttp import web
from aiohttp.typedefs import Middleware

from autopost_runtime.http.problem import HttpProblem
from autopost_runtime.http.quotas import EIGHTH, HeldBytes, Holder, MemoryQuota
from autopost_runtime.http.server import Handler
from autopost_runtime.http.web import read_limited

LIMIT_BY_DEFAULT = 256 * 1024
"""Default ``max_payload_bytes`` of an endpoint."""

LONGEST_TYPE = 256
"""Characters of a Content-Type: parsing 8,190 hostile ones takes a second."""

HELD = web.RequestKey("held", HeldBytes)


class BodyReader:
    def __init__(self, *, within: timedelta, idle: timedelta, memory: int) -> None:
        self._within = within
        self._idle = idle
        self._memory = MemoryQuota(memory)
        self.unverified_limit = max(memory // EIGHTH, LIMIT_BY_DEFAULT)
        """Body limit before the signature is verified. It is the same for every id, so that it does not reveal which
        ids exist. A single body takes no more than the quota of its holder."""

    def read(self, request: web.Request, limit: int, holder: Holder) -> Awaitable[bytes]:
        """Raises ``HttpProblem`` 400, 408, 413 or 415, or ``AtCapacity`` when the memory or the holder's quota is
        full."""
        refuse_other_types(request)
        held = request[HELD] = HeldBytes(holder)
        return read_limited(request, limit, self._within, self._idle, take=partial(self._memory.acquire, held))

    def change_holder(self, request: web.Request, holder: Holder) -> None:
        """Count a body that was read on another holder. Raises ``AtCapacity``."""
        held, size = request[HELD], request[HELD].size
        self._memory.release(held)
        held.holder = holder
        self._memory.acquire(held, size)

    @property
    def middleware(self) -> Middleware:
        """Release the memory of a request only after the response: objects made from the body live until then."""

        @web.middleware
        async def release_memory(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            finally:
                if HELD in request:
                    self._memory.release(request[HELD])

        return release_memory


def refuse_other_types(request: web.Request) -> None:
    """A missing Content-Type counts as JSON: many senders omit it."""
    said = request.headers.get("Content-Type")
    if said is None or said == "application/json":
        return
    is_short = len(said) <= LONGEST_TYPE
    kind, charset = (request.content_type, (request.charset or "utf-8").lower()) if is_short else ("", "")
    json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not json or charset not in ("utf-8", "utf8"):
        raise HttpProblem(
            415,
            "Unsupported Media Type",
            "Content-Type must be application/json (with curl: -H 'Content-Type: application/json')",
            field="Content-Type",
        )
