"""The part of ``/openapi.json`` about posts that were sent: list, cancel, change."""

from typing import Any

Security = list[dict[str, list[str]]]

LISTING = {
    "source_ref": "Posts with this source_ref.",
    "state": "Posts in this state: staged, scheduled, queued, sent, failed, cancelled or suppressed.",
    "since": "Posts from this time on, as in 2026-01-31T10:00:00Z.",
    "after": "`next` of the page before.",
    "limit": "Posts of a page, 1 to 100; 50.",
}
CHANGING = {
    "all": "1: id is a message id, and all posts with this content are meant.",
    "partial": "1: cancel also what has parts in its channel; they stay there.",
    "force": "1: cancel also what another request with the same content relies on.",
}


def list_of_posts(security: Security) -> dict[str, Any]:
    return {
        "operationId": "listPosts",
        "summary": "List posts, the newest first",
        "security": security,
        "parameters": [_parameter(name, about) for name, about in LISTING.items()],
        "responses": {"200": _answer("The posts.", "PostList"), **_refusals(400, 401, 403, 429, 500, 503)},
    }


def changes_of_posts(security: Security) -> dict[str, Any]:
    statuses = (400, 401, 403, 404, 429, 500, 503)
    parameters = [_parameter(name, about) for name, about in CHANGING.items()]
    conflict = {
        "description": "Nothing was changed; `code` says why.",
        "content": {"application/problem+json": {"schema": _ref("schemas", "ChangeRefusal")}},
    }
    return {
        "delete": {
            "operationId": "cancelPost",
            "summary": "Cancel a post: what is not sent yet will not be",
            "security": security,
            "parameters": parameters,
            "responses": {"200": _answer("Cancelled.", "PostChange"), "409": conflict, **_refusals(*statuses)},
        },
        "patch": {
            "operationId": "changePost",
            "summary": "With scheduled_for alone (null: now) another time; with a whole post, that one instead",
            "security": security,
            "parameters": parameters,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": _ref("schemas", "PostRequest")}},
            },
            "responses": {
                "200": _answer("It has its new time.", "PostChange"),
                "202": _answer("It was cancelled, and this one is accepted or staged.", "Accepted", "Staged"),
                "409": conflict,
                **_refusals(*statuses, 408, 413, 415, 422),
            },
        },
    }


def _parameter(name: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": {"type": "string"}}


def _answer(about: str, *schemas: str) -> dict[str, Any]:
    refs = [_ref("schemas", name) for name in schemas]
    shape = refs[0] if len(refs) == 1 else {"oneOf": refs}
    return {"description": about, "content": {"application/json": {"schema": shape}}}


def _refusals(*statuses: int) -> dict[str, Any]:
    return {str(status): _ref("responses", str(status)) for status in sorted(statuses)}


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}
