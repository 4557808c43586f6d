"""The part of the OpenAPI document about publications."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from autopost_runtime.http.problem import Refusal

from autopost_ingest.http.openapi_answers import ApiResponse
from autopost_ingest.publications.creative import CreativeDraft
from autopost_ingest.publications.requests import (
    FILTERS,
    ApproveRequest,
    EmptyRequest,
    PublicationRequest,
    ReasonRequest,
    ResolveRequest,
    ScheduleRequest,
)

READ = (401, 403, 404, 429, 500, 503)
WRITE = (400, 401, 403, 404, 408, 413, 415, 429, 500, 503)
CHANGE = (*WRITE, 409, 412, 428)
CHANNEL = "0de00000-0000-4000-8000-000000000003"


class PublicationAnswer(ApiResponse, frozen=True, kw_only=True):
    """``…_at`` is in UTC, ``…_local`` the same moment in ``timezone``."""

    publication_id: UUID
    channel_id: UUID
    creative_draft: CreativeDraft
    status: Literal["draft", "approved", "scheduled", "publishing", "published", "paused", "failed", "cancelled"]
    version: int
    scheduled_at: datetime | None
    scheduled_local: str | None
    timezone: str | None
    late_after: str
    owner: str | None
    created_by: str | None
    changed_by: str | None
    approved_by: str | None
    approved_at: datetime | None
    approved_plan_hash: str | None
    hash_version: int | None
    content_hash: str | None
    media_type: Literal["text", "photo", "video", "document", "animation", "media_group"]
    delivery_id: UUID | None
    published_message_id: str | None
    published_at: datetime | None
    published_local: str | None
    settled_at: datetime | None
    pause_code: str | None
    cancel_reason: str | None
    last_error: dict[str, Any] | None
    trace_id: str | None
    created_at: datetime
    updated_at: datetime
    warnings: tuple[dict[str, Any], ...] = ()
    """Of a change: ``close_to_another``, ``same_content``, ``perhaps_sent``."""


class Publications(ApiResponse, frozen=True, kw_only=True):
    publications: tuple[PublicationAnswer, ...]
    next: UUID | None
    """``after`` of the next page."""
    trace_id: str | None


class PublicationPreview(ApiResponse, frozen=True, kw_only=True):
    """What the channel would show. Without a plan, ``problems`` says why."""

    publication_id: UUID
    version: int
    plan_hash: str | None
    approved_plan_hash: str | None
    rendered_text: str | None
    calls: int
    notes: tuple[str, ...]
    """What the platform does not support and the plan leaves out."""
    problems: tuple[dict[str, Any], ...]
    plan: dict[str, Any] | None
    trace_id: str | None


class PublicationRefusal(Refusal, kw_only=True, forbid_unknown_fields=True):
    """problem+json with what a caller can act on."""

    code: str | None = None
    """Why: not_approved, too_late, outside_window, local_time_exists_twice, …"""
    version: int | None = None
    """The current one."""
    scope: str | None = None
    """The one that the endpoint does not have."""
    opens_at: datetime | None = None
    neighbours: tuple[datetime, ...] = ()
    """The two times that may be meant."""
    problems: tuple[dict[str, Any], ...] = ()
    """Why no plan is possible."""
    why: str | None = None


PUBLICATION_STRUCTS = (
    PublicationRequest,
    ApproveRequest,
    ScheduleRequest,
    ReasonRequest,
    ResolveRequest,
    EmptyRequest,
    PublicationAnswer,
    Publications,
    PublicationPreview,
    PublicationRefusal,
)

BODIES: dict[str, tuple[str, str, str, type, dict[str, Any]]] = {
    "preview": ("Compile a publication for its channel; changes nothing", "", "PublicationPreview", EmptyRequest, {}),
    "approve": ("Approve the plan of a draft: no other goes out", "approve", "", ApproveRequest, {}),
    "schedule": (
        "Give an approved publication its time, or another one",
        "schedule",
        "",
        ScheduleRequest,
        {"local": "2026-12-01T09:00", "timezone": "Europe/Moscow"},
    ),
    "unschedule": ("Take its time away; it stays approved", "schedule", "", EmptyRequest, {}),
    "cancel": ("Cancel it for good", "schedule", "", ReasonRequest, {"reason": "a wrong price"}),
    "retry": ("Send a failed publication again", "schedule", "", ReasonRequest, {"reason": "the bot is back"}),
    "resolve": (
        "Say whether an unanswered call arrived",
        "schedule",
        "",
        ResolveRequest,
        {"decision": "sent", "reason": "seen in the channel", "provider_message_id": "17"},
    ),
}
DRAFT = {
    "channel_id": CHANNEL,
    "creative_draft": {
        "text": "<b>Sale</b> until Friday",
        "buttons": [{"text": "Shop", "url": "https://shop.example/"}],
    },
    "timezone": "Europe/Moscow",
    "owner": "mailto:ads@shop.example",
}
ABOUT_FILTERS = {
    "from": "Scheduled at this time or later; with an offset.",
    "to": "Scheduled before this time.",
    "status": "One status, or several with commas.",
    "channel": "Only of this channel.",
    "after": "`next` of the page before.",
    "limit": "At most this many: 1 to 100, by default 100.",
}


def publication_paths(security: list[dict[str, list[str]]]) -> dict[str, Any]:
    one = {"parameters": [_parameter("id", "path", "The id of a publication.", required=True)]}
    paths: dict[str, Any] = {
        "/v1/publications": {
            "get": _call(
                "listPublications", "Publications by time", security, "Publications", *READ[:2], *READ[3:], 400
            )
            | {"parameters": _filters()},
            "post": _call("draftPublication", _scoped("Draft a publication", "draft"), security, "", *_but_404(WRITE))
            | {"requestBody": _body(PublicationRequest, DRAFT)},
        },
        "/v1/publications.ics": {"get": _calendar(security)},
        "/v1/publications/{id}": one
        | {
            "get": _call("readPublication", "A publication; its ETag is its version", security, "", *READ, 400),
            "put": _call(
                "editPublication", _scoped("Edit a publication; it is a draft again", "draft"), security, "", *CHANGE
            )
            | {"requestBody": _body(PublicationRequest, DRAFT), "parameters": [_if_match()]},
        },
    }
    for verb, (summary, scope, schema, shape, example) in BODIES.items():
        call = _call(f"{verb}Publication", _scoped(summary, scope), security, schema, *(CHANGE if scope else WRITE))
        call |= {"requestBody": _body(shape, example), "parameters": [_if_match()] if scope else []}
        paths[f"/v1/publications/{{id}}/{verb}"] = one | {"post": call}
    return paths


def _call(name: str, summary: str, security: list[dict[str, list[str]]], schema: str, *statuses: int) -> dict[str, Any]:
    done = "201" if name == "draftPublication" else "200"
    unprocessable = {} if "list" in name or "read" in name else {"422": _unprocessable()}
    return {
        "operationId": name,
        "summary": summary,
        "security": security,
        "responses": {
            done: _answer(schema or "PublicationAnswer"),
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)},
            **unprocessable,
        },
    }


def _scoped(summary: str, scope: str) -> str:
    return f"{summary}. Needs the scope {scope}" if scope else summary


def _but_404(statuses: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(status for status in statuses if status != 404)


def _answer(schema: str) -> dict[str, Any]:
    response: dict[str, Any] = {"description": "Done.", "content": {"application/json": {"schema": _ref(schema)}}}
    if schema == "PublicationAnswer":
        response["headers"] = {"ETag": {"description": "The version in quotes.", "schema": {"type": "string"}}}
    return response


def _unprocessable() -> dict[str, Any]:
    return {
        "description": "The body is well-formed, but a value is invalid.",
        "content": {"application/problem+json": {"schema": _ref("PublicationRefusal")}},
    }


def _calendar(security: list[dict[str, list[str]]]) -> dict[str, Any]:
    call = _call("publicationCalendar", "The calendar for other programs", security, "", *READ[:2], *READ[3:], 400)
    del call["responses"]["422"]
    call["responses"]["200"] = {
        "description": "iCalendar (RFC 5545), from a month ago unless `from` is given.",
        "content": {"text/calendar": {"schema": {"type": "string"}}},
    }
    return call | {"parameters": _filters()}


def _filters() -> list[dict[str, Any]]:
    return [_parameter(name, "query", ABOUT_FILTERS[name]) for name in FILTERS]


def _if_match() -> dict[str, Any]:
    about = "The version that the caller has seen, in quotes. `*` cancels whatever version it has."
    return _parameter("If-Match", "header", about, required=True)


def _parameter(name: str, place: str, about: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "description": about, "schema": {"type": "string"}}


def _body(shape: type, example: dict[str, Any]) -> dict[str, Any]:
    content = {"schema": _ref(shape.__name__), "example": example}
    return {"required": bool(example), "content": {"application/json": content}}


def _ref(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}
