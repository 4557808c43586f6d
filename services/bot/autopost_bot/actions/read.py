"""What a client reads: actions under way, messages of a chat, the known types, and tickets for browsers."""

from typing import Any

import msgspec
from aiohttp import web
from autopost_contracts.bot_action_types import schema_text, typescript
from autopost_contracts.bot_actions import CURSOR_HEADER, DEFAULT_TEXTS, FALLBACK_TEXT

from autopost_bot.access.access import TICKET, Access
from autopost_bot.access.parameters import BIGGEST_NUMBER, check_chat_id, check_workspace, read_number
from autopost_bot.access.problems import bad_ticket, invalid
from autopost_bot.access.tickets import make_ticket, utc_now
from autopost_bot.gateway import Gateway

MESSAGES, MOST_MESSAGES = 50, 200
MOST_ACTIONS = 200


class ChatReader:
    def __init__(self, access: Access, gateway: Gateway) -> None:
        self._access = access
        self._gateway = gateway

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/api/chat/actions", self.actions)
        app.router.add_get("/api/chat/action-types", self.types)
        app.router.add_get("/api/chat/bot-actions.schema.json", self.schema)
        app.router.add_get("/api/chat/bot-actions.ts", self.typescript)
        app.router.add_get("/api/chats/{chat_id:[^/]+}/messages", self.messages)
        app.router.add_post("/api/chats/{chat_id:[^/]+}/tickets", self.ticket)

    async def actions(self, request: web.Request) -> web.Response:
        chat_id = check_chat_id(request.query.get("chatId"))
        endpoint = await self._access.reader(request, chat_id)
        self._check_workspace(request, endpoint.workspace_id)
        actions, seq = await self._gateway.list_actions(endpoint.workspace_id, chat_id, MOST_ACTIONS)
        return _json(actions, headers={CURSOR_HEADER: str(seq)})

    async def messages(self, request: web.Request) -> web.Response:
        chat_id = check_chat_id(request.match_info["chat_id"])
        endpoint = await self._access.reader(request, chat_id)
        after = read_number(request, "after", BIGGEST_NUMBER, least=0)
        before = read_number(request, "before", BIGGEST_NUMBER)
        if after is not None and before is not None:
            raise invalid("before", "must not be given together with after")
        limit = read_number(request, "limit", MOST_MESSAGES) or MESSAGES
        return _json(await self._gateway.chat_messages(endpoint.workspace_id, chat_id, after, before, limit))

    async def ticket(self, request: web.Request) -> web.Response:
        """Only with a secret: a ticket does not prolong itself."""
        chat_id = check_chat_id(request.match_info["chat_id"])
        endpoint = await self._access.writer(request)
        ticket, expires = make_ticket(await self._access.ticket_endpoint(endpoint), chat_id, utc_now())
        return _json({"ticket": ticket, "expiresAt": expires}, status=201, headers={"Cache-Control": "no-store"})

    async def types(self, _: web.Request) -> web.Response:
        types = [{"actionType": name, "defaultText": text} for name, text in DEFAULT_TEXTS.items()]
        return _json({"actionTypes": types, "fallbackText": FALLBACK_TEXT})

    async def schema(self, _: web.Request) -> web.Response:
        return web.Response(text=schema_text(), content_type="application/schema+json")

    async def typescript(self, _: web.Request) -> web.Response:
        return web.Response(text=typescript(), content_type="text/plain")

    def _check_workspace(self, request: web.Request, workspace: Any) -> None:
        named = request.query.get("workspaceId")
        if TICKET in request.query and named is not None and named.lower() != str(workspace):
            raise bad_ticket()
        check_workspace(named, workspace)


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), headers=headers, content_type="application/json")
