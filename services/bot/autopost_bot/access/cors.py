"""CORS: pages of the configured origins may call the API."""

from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware
from autopost_contracts.bot_actions import CURSOR_HEADER
from autopost_runtime.http.server import Handler

_METHODS = "GET, POST"
_HEADERS = "Authorization, Content-Type, Last-Event-ID, X-Webhook-Secret"
_REMEMBERED = "600"


def cors(origins: tuple[str, ...]) -> tuple[Middleware, Callable[[web.Request, web.StreamResponse], Awaitable[None]]]:
    """A middleware that answers preflight requests, and a signal that names the origin in each response."""
    known = frozenset(origins)

    @web.middleware
    async def answer_preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        if not asked or request.headers.get(hdrs.ORIGIN) not in known:
            return await handler(request)
        return web.Response(
            status=204,
            headers={
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: _METHODS,
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: _HEADERS,
                hdrs.ACCESS_CONTROL_MAX_AGE: _REMEMBERED,
            },
        )

    async def name_origin(request: web.Request, response: web.StreamResponse) -> None:
        origin = request.headers.get(hdrs.ORIGIN)
        if origin in known:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = CURSOR_HEADER
            response.headers[hdrs.VARY] = hdrs.ORIGIN

    return answer_preflight, name_origin
