"""The OpenAPI document of ingest, made of the structs that the service itself reads and writes.

What is said here by hand (paths, statuses, the shape of an answer) is held against the running service by its tests.
"""

from functools import cache
from typing import Any

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest

from autopost_ingest.dry_run import DryRun
from autopost_ingest.openapi_answers import Accepted, Duplicate, PostState, Refusal, Staged, Update
from autopost_ingest.openapi_examples import POSTS, UPDATES

VERSION = "1"
TITLE = "autopost ingest"
ABOUT = (
    "Takes a post once and delivers it to every channel of the workspace that wants it. The secret says which "
    "workspace that is. An answer is given after the commit: what was answered 2xx is kept. Refusals are problem+json "
    "(RFC 9457); one that has a `field` is about that field. A request that was refused or failed may be repeated as "
    "it is."
)

REFUSALS = {
    400: "The body or a parameter cannot be read, or the request ended early.",
    401: "No enabled endpoint has this secret, or the signature does not fit.",
    403: "The workspace is disabled.",
    404: "There is no such post in this workspace.",
    408: "The head or the body came too slowly.",
    413: "The body is larger than the endpoint takes.",
    415: "The body is encoded, or of another type or charset than JSON in UTF-8.",
    422: "The body can be read and makes no sense.",
    429: "Too many requests for this endpoint.",
    500: "A failure of ours; the trace id names it in our logs.",
    503: "The workspace is paused, the database is away, or too much comes in at once. Repeat it with the same "
    "`source_ref`: if the database was lost so late that the post is kept after all, the answer is then 200.",
}
BODY = (400, 401, 403, 408, 413, 415, 429, 500, 503)
WAITS = (429, 503)

SECRETS: list[dict[str, list[str]]] = [{"bearer": []}, {"secret": []}]
SIGNED: list[dict[str, list[str]]] = [{"webhook_id": [], "webhook_timestamp": [], "webhook_signature": []}]


async def serve_document(_: web.Request) -> web.Response:
    return web.Response(body=_encoded(), content_type="application/json")


@cache
def _encoded() -> bytes:
    return msgspec.json.encode(document())


def document() -> dict[str, Any]:
    structs = (PostRequest, Accepted, Staged, Duplicate, DryRun, PostState, Update, Refusal)
    _, schemas = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": VERSION, "description": ABOUT, "license": {"name": "MIT"}},
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": _security_schemes(),
            "responses": {str(status): _refusal(status) for status in REFUSALS},
        },
    }


def _paths() -> dict[str, Any]:
    return {
        "/v1/posts": {"post": _post("post", "Post", SECRETS)},
        "/v1/posts/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
            ],
            "post": _post("postSigned", "Post, signed as Standard Webhooks; id is the endpoint's", SIGNED),
            "get": _state(),
        },
        "/v1/bot/max": {"post": _bot()},
        "/openapi.json": {"get": _document()},
    }


def _post(name: str, summary: str, security: list[dict[str, list[str]]]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "security": security,
        "parameters": [
            _parameter("dry_run", "1", "Say for every channel what would happen, and write nothing."),
            _parameter("media", "skip", "In a dry run: fetch no media by URL; the hashes are null then."),
        ],
        "requestBody": _body("PostRequest", POSTS),
        "responses": {
            "200": _answer("Dropped as a duplicate, or the answer to a dry run.", "Duplicate", "DryRun"),
            "202": _answer("Taken in, or staged until its media is fetched.", "Accepted", "Staged"),
            **_refusals(*BODY, 422),
        },
    }


def _state() -> dict[str, Any]:
    return {
        "operationId": "readPost",
        "summary": "What became of a post that was staged; id is its post_id",
        "security": SECRETS,
        "responses": {"200": _answer("Its state.", "PostState"), **_refusals(401, 403, 404, 429, 500, 503)},
    }


def _bot() -> dict[str, Any]:
    return {
        "operationId": "botUpdate",
        "summary": "An update of the MAX bot; a second time it is told and not kept",
        "security": [{"max": []}],
        "requestBody": _body(None, UPDATES),
        "responses": {"200": _answer("Kept, known already, or of no interest.", "Update"), **_refusals(*BODY)},
    }


def _document() -> dict[str, Any]:
    answer = {"description": "This document.", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {"operationId": "openapi", "summary": "This document", "security": [], "responses": {"200": answer}}


def _parameter(name: str, value: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": {"enum": [value]}}


def _body(schema: str | None, examples: dict[str, Any]) -> dict[str, Any]:
    shape = _ref("schemas", schema) if schema else {"type": "object"}
    named = {name: {"value": value} for name, value in examples.items()}
    return {"required": True, "content": {"application/json": {"schema": shape, "examples": named}}}


def _answer(about: str, *schemas: str) -> dict[str, Any]:
    refs = [_ref("schemas", name) for name in schemas]
    shape = refs[0] if len(refs) == 1 else {"oneOf": refs}
    return {"description": about, "content": {"application/json": {"schema": shape}}}


def _refusals(*statuses: int) -> dict[str, Any]:
    return {str(status): _ref("responses", str(status)) for status in sorted(statuses)}


def _refusal(status: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "description": REFUSALS[status],
        "content": {"application/problem+json": {"schema": _ref("schemas", "Refusal")}},
    }
    if status in WAITS:
        told["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    return told


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _security_schemes() -> dict[str, Any]:
    def header(name: str) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": name}

    return {
        "bearer": {"type": "http", "scheme": "bearer"},
        "secret": header("X-Webhook-Secret"),
        "webhook_id": header("webhook-id"),
        "webhook_timestamp": header("webhook-timestamp"),
        "webhook_signature": header("webhook-signature"),
        "max": header("X-Max-Bot-Api-Secret"),
    }
