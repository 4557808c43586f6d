"""The OpenAPI document of ingest, generated from the structs that the service reads and writes.

Paths and statuses are written by hand; tests compare them with the running service.
"""

from functools import cache
from typing import Any

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest
from autopost_runtime.http.problem import Refusal

from autopost_ingest.dry_run.answer import DryRun
from autopost_ingest.http.openapi_answers import Accepted, Duplicate, PostRefusal, Staged, Update
from autopost_ingest.http.openapi_examples import POSTS, UPDATES
from autopost_ingest.http.openapi_posts import changes_of_posts, list_of_posts
from autopost_ingest.http.openapi_publications import PUBLICATION_STRUCTS, publication_paths
from autopost_ingest.http.post_answers import POST_STRUCTS

VERSION = "1"
TITLE = "autopost ingest"
ABOUT = (
    "Accepts a post once and delivers it to every channel of the workspace whose route_filter matches. The secret "
    "identifies the workspace. A 2xx response is sent after the commit: the post is stored. Errors are problem+json "
    "(RFC 9457); `field` names the part of the request that is wrong. It is safe to repeat a request that was "
    "refused or failed."
)

REFUSALS = {
    400: "The body or a parameter is invalid, or the request is incomplete.",
    401: "The secret is unknown or missing, or the signature does not match.",
    403: "The workspace is disabled.",
    404: "Nothing with this id in this workspace.",
    408: "The request was not received in time.",
    409: "The publication is not in a state for this; `code` says why.",
    412: "The publication has changed since: `version` and ETag are the current ones.",
    413: "The body is larger than the limit of the endpoint.",
    415: "The body is not application/json in UTF-8, or has a Content-Encoding.",
    422: "The body is well-formed, but a value is invalid, or the post reaches no channel: then `problems` says why, "
    "by cause, and the corrected request with the same `source_ref` is accepted.",
    428: "If-Match is missing.",
    429: "The rate limit of this endpoint is exceeded.",
    500: "Internal error; the logs have it under the trace id.",
    503: "The workspace is paused, all channels of the post are disabled, the database is not available, or the server "
    "is at capacity. Retry with the same "
    "`source_ref`: if the post was stored nevertheless, the response is 200 with status duplicate.",
}
REFUSED_AS = dict.fromkeys((403, 409, 412), "PublicationRefusal") | dict.fromkeys((422, 503), "PostRefusal")
"""422 of a publication is its own: other answers of this status have no such members."""
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
    structs = (
        PostRequest,
        Accepted,
        Staged,
        Duplicate,
        DryRun,
        Update,
        PostRefusal,
        Refusal,
        *POST_STRUCTS,
        *PUBLICATION_STRUCTS,
    )
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
        "/v1/posts": {"post": _post("post", "Post", SECRETS), "get": list_of_posts(SECRETS)},
        "/v1/posts/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
            ],
            "post": _post(
                "postSigned",
                "Post with a Standard Webhooks signature; id is the endpoint. webhook-id ends with the query",
                SIGNED,
            ),
            "get": _state(),
            **changes_of_posts(SECRETS),
        },
        "/v1/bot/max": {"post": _bot()},
        **publication_paths(SECRETS),
        "/openapi.json": {"get": _document()},
    }


def _post(name: str, summary: str, security: list[dict[str, list[str]]]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "security": security,
        "parameters": [
            _parameter("dry_run", "1", "Preview the result for every channel and store nothing."),
            _parameter("media", "skip", "In a dry run: do not fetch media by URL; hashes are null."),
        ],
        "requestBody": _body("PostRequest", POSTS),
        "responses": {
            "200": _answer("Dropped as a duplicate, or the result of a dry run.", "Duplicate", "DryRun"),
            "202": _answer("Accepted, or staged until its media is fetched.", "Accepted", "Staged"),
            **_refusals(*BODY, 422),
        },
    }


def _state() -> dict[str, Any]:
    return {
        "operationId": "readPost",
        "summary": "What became of a post; id is that of its run, post, message or trace",
        "security": SECRETS,
        "responses": {
            "200": _answer("The status of the post.", "PostState"),
            **_refusals(401, 403, 404, 429, 500, 503),
        },
    }


def _bot() -> dict[str, Any]:
    return {
        "operationId": "botUpdate",
        "summary": "An update of the MAX bot; a repeated one is not stored again",
        "security": [{"max": []}],
        "requestBody": _body(None, UPDATES),
        "responses": {"200": _answer("Stored, or a duplicate.", "Update"), **_refusals(*BODY)},
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
    response: dict[str, Any] = {
        "description": REFUSALS[status],
        "content": {"application/problem+json": {"schema": _ref("schemas", REFUSED_AS.get(status, "Refusal"))}},
    }
    if status in WAITS:
        response["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return response


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
