"""``POST /api/chat/actions/start`` and ``…/update``: idempotent; the response is sent after the commit."""

from datetime import timedelta
from typing import Any

from aiohttp import web
from autopost_contracts.bot_actions import CURSOR_HEADER
from autopost_runtime.http.body_reader import BodyReader
from autopost_runtime.http.endpoint_cache import Endpoint
from autopost_runtime.http.quotas import tenant
from autopost_runtime.telemetry import metrics

from autopost_bot.access import problems
from autopost_bot.access.access import Access
from autopost_bot.actions.read_action import LONGEST_BODY, read_start, read_update
from autopost_bot.gateway import ActionResult, Gateway
from autopost_bot.stream.announce import ChatAnnouncer

changes = metrics.counter("autopost_bot_action_changes_total", "Starts and updates of actions by verdict.")

PUBLISHED = frozenset({"created", "changed", "completed"})
"""The verdicts of a real change; only these took a number."""


class ActionWriter:
    def __init__(self, access: Access, gateway: Gateway, body_reader: BodyReader, announcer: ChatAnnouncer) -> None:
        self._access = access
        self._gateway = gateway
        self._body_reader = body_reader
        self._announcer = announcer

    def add_to(self, app: web.Application) -> None:
        app.router.add_post("/api/chat/actions/start", self.start)
        app.router.add_post("/api/chat/actions/update", self.update)

    async def start(self, request: web.Request) -> web.Response:
        endpoint = await self._access.writer(request)
        action = read_start(await self._body(request, endpoint), endpoint.workspace_id)
        return self._answer(endpoint, action, await self._gateway.start_action(endpoint, action))

    async def update(self, request: web.Request) -> web.Response:
        endpoint = await self._access.writer(request)
        action = read_update(await self._body(request, endpoint), endpoint.workspace_id)
        return self._answer(endpoint, action, await self._gateway.update_action(endpoint, action))

    async def _body(self, request: web.Request, endpoint: Endpoint) -> bytes:
        limit = min(LONGEST_BODY, endpoint.max_payload_bytes)
        return await self._body_reader.read(request, limit, tenant(endpoint.workspace_id))

    def _answer(self, endpoint: Endpoint, action: dict[str, Any], result: ActionResult) -> web.Response:
        changes.add(1, {"verdict": result.verdict})
        match result.verdict:
            case "unknown":
                raise problems.unknown_action(action["action_id"])
            case "rate_limited":
                raise problems.rate_limited(endpoint, timedelta(milliseconds=result.wait_ms or 0))
            case "workspace_paused":
                raise problems.workspace_paused()
            case "workspace_disabled":
                raise problems.workspace_disabled()
            case "endpoint_disabled":  # still in the endpoint cache; the database decides
                raise problems.unauthorized()
            case _:
                pass
        if result.verdict in PUBLISHED:
            self._announcer.announce(endpoint.workspace_id, action["chat_id"], result.seq)
        return web.Response(
            status=201 if result.verdict == "created" else 200,
            body=bytes(result.action),
            headers={CURSOR_HEADER: str(result.seq)},
            content_type="application/json",
        )
