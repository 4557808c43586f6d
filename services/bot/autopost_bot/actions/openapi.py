"""The OpenAPI document of the bot, generated from the structs of the contract.

Paths and statuses are written by hand; a test compares them with the running service.
"""

from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_contracts.bot_actions import (
    CURSOR_HEADER,
    BotAction,
    BotActionEvent,
    ChatMessage,
    ChatMessageEvent,
    ResyncEvent,
)
from autopost_runtime.http.problem import Refusal
from msgspec import Meta, Struct

from autopost_bot.access.parameters import LONGEST_ID

TITLE = "autopost bot"
ABOUT = (
    "Long-running actions of a bot, and the stream of a chat that shows them. The secret of an endpoint of kind "
    "bot_api identifies the workspace; a ticket lets a browser read one chat. Errors are problem+json (RFC 9457); "
    "`field` names the part of the request that is wrong. Every call may be repeated."
)
REFUSALS = {
    400: "The body is not valid JSON, or incomplete.",
    401: "The secret is unknown or missing, or the ticket is not valid for this chat.",
    403: "workspaceId is another workspace, or the workspace is disabled.",
    404: "There is no action with this actionId: call start first.",
    408: "The request was not received in time.",
    413: "The body is larger than 64 KiB.",
    415: "The body is not application/json in UTF-8, or has a Content-Encoding.",
    422: "A field is missing or has an invalid value.",
    429: "The rate limit of this endpoint is exceeded.",
    500: "Internal error; the logs have it under the trace id.",
    503: "The workspace is paused, the database is not available, or the server is at capacity.",
}
WRITE = (400, 401, 403, 408, 413, 415, 422, 429, 500, 503)
READ = (401, 403, 422, 429, 500, 503)
SECRETS: list[dict[str, list[str]]] = [{"bearer": []}, {"secret": []}]
READERS: list[dict[str, list[str]]] = [*SECRETS, {"ticket": []}]

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]


class StartAction(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A text or payload that is absent stays as it is; null clears it."""

    workspace_id: UUID
    chat_id: Id
    action_id: Id
    action_type: Annotated[str, Meta(min_length=1, max_length=64)]
    display_text: str | msgspec.UnsetType | None = msgspec.UNSET
    payload: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class UpdateAction(Struct, kw_only=True, rename="camel", omit_defaults=True):
    workspace_id: UUID
    chat_id: Id
    action_id: Id
    status: Literal["done", "error"]
    display_text: str | msgspec.UnsetType | None = msgspec.UNSET
    payload: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class StoredMessage(ChatMessage, frozen=True, kw_only=True, rename="camel"):
    seq: int


class Ticket(Struct, kw_only=True, rename="camel"):
    ticket: str
    expires_at: datetime


class ActionTypeText(Struct, kw_only=True, rename="camel"):
    action_type: str
    default_text: str


class ActionTypes(Struct, kw_only=True, rename="camel"):
    action_types: list[ActionTypeText]
    fallback_text: str


STRUCTS = (BotAction, StoredMessage, StartAction, UpdateAction, Ticket, ActionTypes, Refusal)
EVENTS = (ChatMessageEvent, BotActionEvent, ResyncEvent)


async def serve_document(_: web.Request) -> web.Response:
    return web.Response(body=_encoded(), content_type="application/json")


@cache
def _encoded() -> bytes:
    return msgspec.json.encode(document())


def document() -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components((*STRUCTS, *EVENTS), ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": "1", "description": ABOUT, "license": {"name": "MIT"}},
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "secret": {"type": "apiKey", "in": "header", "name": "X-Webhook-Secret"},
                "ticket": {"type": "apiKey", "in": "query", "name": "ticket"},
            },
            "responses": {str(status): _refusal(status) for status in REFUSALS},
        },
    }


def _paths() -> dict[str, Any]:
    return {
        "/api/chat/actions/start": {"post": _start()},
        "/api/chat/actions/update": {"post": _update()},
        "/api/chat/actions": {"get": _list()},
        "/api/chat/action-types": {"get": _open("actionTypes", "Known types with their default texts", "ActionTypes")},
        "/api/chat/bot-actions.schema.json": {"get": _open("actionSchema", "JSON Schema of the events", None)},
        "/api/chat/bot-actions.ts": {"get": _open("actionTypeScript", "TypeScript types", None, "text/plain")},
        "/api/chats/{chatId}/messages": {"parameters": [_chat()], "get": _messages()},
        "/api/chats/{chatId}/tickets": {"parameters": [_chat()], "post": _tickets()},
        "/api/chats/{chatId}/events": {"parameters": [_chat()], "get": _events()},
        "/openapi.json": {"get": _open("openapi", "This document", None)},
    }


def _start() -> dict[str, Any]:
    answers = {
        "200": _answer("It was started before: the action as it is.", _ref("schemas", "BotAction"), cursor=True),
        "201": _answer("Started.", _ref("schemas", "BotAction"), cursor=True),
    }
    return _call("startAction", "Start an action, or repeat a start", SECRETS, answers, WRITE, body="StartAction")


def _update() -> dict[str, Any]:
    answer = _answer("The action as it is; the first end stays.", _ref("schemas", "BotAction"), cursor=True)
    return _call("updateAction", "End an action", SECRETS, {"200": answer}, (*WRITE, 404), body="UpdateAction")


def _list() -> dict[str, Any]:
    actions = {"type": "array", "items": _ref("schemas", "BotAction")}
    answer = _answer("Newest change first.", actions, cursor=True)
    parameters = [_query("workspaceId", required=True), _query("chatId", required=True)]
    return _call("listActions", "Actions under way", READERS, {"200": answer}, READ, parameters)


def _messages() -> dict[str, Any]:
    messages = {"type": "array", "items": _ref("schemas", "StoredMessage")}
    parameters = [_query("after"), _query("before"), _query("limit")]
    answer = _answer("With after: what came after that number, oldest first. Otherwise newest first.", messages)
    return _call("listMessages", "Messages of a chat", READERS, {"200": answer}, READ, parameters)


def _tickets() -> dict[str, Any]:
    answer = _answer("Valid for 12 hours, for reading this chat.", _ref("schemas", "Ticket"))
    return _call("makeTicket", "A ticket for a browser", SECRETS, {"201": answer}, (401, 403, 422, 500, 503))


def _events() -> dict[str, Any]:
    event = {"oneOf": [_ref("schemas", kind.__name__) for kind in EVENTS]}
    answers = {
        "200": _answer("Server-sent events; each id is the chat's number.", event, "text/event-stream"),
        "204": {"description": "The workspace is disabled: do not come back."},
    }
    last = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer"}}
    return _call("chatEvents", "The stream of a chat", READERS, answers, (401, 422, 500), [_query("after"), last])


def _open(name: str, summary: str, schema: str | None, kind: str = "application/json") -> dict[str, Any]:
    shape = _ref("schemas", schema) if schema else {"type": "string" if kind == "text/plain" else "object"}
    return _call(name, summary, [], {"200": _answer(f"{summary}.", shape, kind)}, ())


def _call(
    name: str,
    summary: str,
    security: list[dict[str, list[str]]],
    answers: dict[str, Any],
    refusals: tuple[int, ...],
    parameters: list[dict[str, Any]] | None = None,
    body: str | None = None,
) -> dict[str, Any]:
    call: dict[str, Any] = {"operationId": name, "summary": summary, "security": security}
    if parameters:
        call["parameters"] = parameters
    if body:
        content = {"application/json": {"schema": _ref("schemas", body)}}
        call["requestBody"] = {"required": True, "content": content}
    return {**call, "responses": {**answers, **{str(one): _ref("responses", str(one)) for one in sorted(refusals)}}}


def _chat() -> dict[str, Any]:
    return {"name": "chatId", "in": "path", "required": True, "schema": {"type": "string"}}


def _query(name: str, *, required: bool = False) -> dict[str, Any]:
    kind = "string" if name.endswith("Id") else "integer"
    return {"name": name, "in": "query", "required": required, "schema": {"type": kind}}


def _answer(
    about: str, schema: dict[str, Any], kind: str = "application/json", *, cursor: bool = False
) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": about, "content": {kind: {"schema": schema}}}
    if cursor:
        about = "The chat's number; a stream with after= this number misses nothing."
        answer["headers"] = {CURSOR_HEADER: {"description": about, "schema": {"type": "integer"}}}
    return answer


def _refusal(status: int) -> dict[str, Any]:
    shape = {"application/problem+json": {"schema": _ref("schemas", "Refusal")}}
    return {"description": REFUSALS[status], "content": shape}


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}
