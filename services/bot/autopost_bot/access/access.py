"""Who may call: an endpoint of kind ``bot_api`` by its secret; for reading one chat, also a ticket."""

from collections.abc import Callable
from datetime import datetime

from aiohttp import web
from autopost_contracts.ids import EndpointId
from autopost_runtime.http.endpoint_cache import Endpoint, EndpointCache, TtlCache, secret_of
from autopost_runtime.http.rate_limit import RateLimiter

from autopost_bot.access.problems import bad_ticket, rate_limited, unauthorized, workspace_disabled
from autopost_bot.access.tickets import is_valid, read_ticket, utc_now
from autopost_bot.gateway import Gateway, TicketEndpoint

TICKET = "ticket"


class Access:
    def __init__(self, gateway: Gateway, now: Callable[[], datetime] = utc_now) -> None:
        self._endpoints = EndpointCache(gateway.resolve_endpoint)
        self._tickets: TtlCache[EndpointId, TicketEndpoint | None] = TtlCache(gateway.chat_ticket_key)
        self._reads = RateLimiter()
        self._now = now

    async def writer(self, request: web.Request) -> Endpoint:
        """Raises ``HttpProblem`` 401 or 403."""
        endpoint = await self._by_secret(request)
        if endpoint.workspace_status == "disabled":
            raise workspace_disabled()
        return endpoint

    async def reader(self, request: web.Request, chat_id: str) -> Endpoint:
        """Raises ``HttpProblem`` 401, 403 or 429."""
        endpoint = await self.listener(request, chat_id)
        if endpoint.workspace_status == "disabled":
            raise workspace_disabled()
        wait = self._reads.acquire(endpoint)
        if wait is not None:
            raise rate_limited(endpoint, wait)
        return endpoint

    async def listener(self, request: web.Request, chat_id: str) -> Endpoint:
        """Also of a disabled workspace, and without a rate limit: a browser gives up for ever on a refused stream."""
        if secret_of(request) is None and TICKET in request.query:
            return await self._by_ticket(request.query[TICKET], chat_id)
        return await self._by_secret(request)

    async def ticket_endpoint(self, endpoint: Endpoint) -> TicketEndpoint:
        found = await self._tickets.get(endpoint.endpoint_id)
        if found is None:  # disabled a moment ago
            raise unauthorized()
        return found

    async def _by_secret(self, request: web.Request) -> Endpoint:
        endpoint = await self._endpoints.find("bot_api", secret_of(request))
        if endpoint is None:
            raise unauthorized()
        return endpoint

    async def _by_ticket(self, ticket: str, chat_id: str) -> Endpoint:
        claims = read_ticket(ticket)
        endpoint = None if claims is None else await self._tickets.get(claims.endpoint_id)
        if claims is None or endpoint is None or not is_valid(claims, endpoint, chat_id, self._now()):
            raise bad_ticket()
        return endpoint
