"""Answers about publications: the document with its ETag, and what each refusal of the database means in HTTP."""

from typing import Any

import msgspec
from aiohttp import web
from autopost_runtime.http.problem import HttpProblem
from autopost_runtime.telemetry import tracing as telemetry

from autopost_ingest.publications.prepare import CompiledCreative
from autopost_ingest.publications.times import in_zone, refused

DONE = frozenset(
    {"drafted", "edited", "approved", "scheduled", "unscheduled", "cancelled", "perhaps_sent", "retried"}
    | {"sent", "continues", "resent"}
)

CONFLICTS = {
    "not_editable": "a publication that is {status} cannot be edited{paused}",
    "not_a_draft": "only a draft can be approved; this publication is {status}",
    "not_approved": "approve it first: it is a draft",
    "not_schedulable": "a publication that is {status} cannot be given another time{paused}",
    "not_scheduled": "only a scheduled publication can be unscheduled; this one is {status}",
    "not_retryable": "there is nothing to retry: it is {status}{paused} and no delivery of it failed",
    "unconfirmed": "it is not known whether it was sent: look into the channel, then use resolve",
    "not_unconfirmed": "nothing is to be resolved: it is {status}{paused}",
    "refused": "its delivery cannot be sent again",
    "too_late": "it is being sent; a call that fails will not be repeated",
    "partly_sent": "parts of it are in the channel, so it was not cancelled",
    "already": "it is {status} already",
    "not_held": "its delivery is no longer held",
    "plan_changed": "the channel would show another plan than the one of plan_hash; preview it again",
}

PERHAPS_SENT = {"code": "perhaps_sent", "message": "an earlier call was never answered: the channel may show it"}


def settle(answer: dict[str, Any], *, time_field: str = "at") -> dict[str, Any]:
    """The verdict of a change as a document. Raises ``HttpProblem``."""
    verdict, document = answer["verdict"], answer.get("publication")
    if verdict not in DONE:
        raise refusal(answer, time_field)
    if document is None:
        raise unknown()
    warnings = [PERHAPS_SENT] if verdict == "perhaps_sent" else answer.get("warnings", [])
    return shown(document) | {"warnings": warnings}


def refusal(answer: dict[str, Any], time_field: str = "at") -> HttpProblem:
    verdict, document = answer["verdict"], answer.get("publication") or {}
    match verdict:
        case "not_found":
            return unknown()
        case "stale":
            return stale(document["version"])
        case "unknown_channel":
            return refused("channel_id", "no channel with this id in this workspace", code=verdict)
        case "channel_disabled":
            return refused("channel_id", "the channel is disabled; enable it first", code=verdict)
        case "in_past":
            return refused(time_field, "must not be in the past", code=verdict)
        case "outside_window":
            opens_at = answer.get("opens_at")
            when = f"it opens at {_opening(opens_at, document)}" if opens_at else "it never opens"
            words = f"the posting window of the channel is closed then; {when}"
            return refused(time_field, words, code=verdict, opens_at=opens_at)
        case _:
            return _conflict(answer, verdict, document)


def _opening(opens_at: str, document: dict[str, Any]) -> str:
    return in_zone(opens_at, document.get("timezone")) or opens_at


def _conflict(answer: dict[str, Any], verdict: str, document: dict[str, Any]) -> HttpProblem:
    code = document.get("pause_code")
    words = CONFLICTS[verdict].format(status=document.get("status"), paused=f" ({code})" if code else "")
    more = {"code": verdict} | {name: document[name] for name in ("version",) if name in document}
    if "why" in answer:
        more["why"] = answer["why"]
    return HttpProblem(409, "Conflict", words, more=more)


def unknown() -> HttpProblem:
    return HttpProblem(404, "Not Found", "no publication with this id in this workspace")


def stale(version: int) -> HttpProblem:
    return HttpProblem(
        412,
        "Precondition Failed",
        f"the publication has changed: its version is {version} now",
        field="If-Match",
        headers={"ETag": etag(version)},
        more={"version": version},
    )


def uncompilable(compiled: CompiledCreative) -> HttpProblem:
    first = compiled.problems[0] if compiled.problems else {"field": "creative_draft", "message": "no plan is possible"}
    return refused(
        f"creative_draft.{first['field']}" if first["field"] != "creative_draft" else first["field"],
        first["message"],
        code="invalid_creative",
        problems=list(compiled.problems),
    )


def preview(document: dict[str, Any], compiled: CompiledCreative) -> dict[str, Any]:
    [rendering] = compiled.post["renderings"]
    plan = rendering.get("plan")
    return {
        "publication_id": document["publication_id"],
        "version": document["version"],
        "plan_hash": compiled.plan_hash,
        "approved_plan_hash": document["approved_plan_hash"],
        "rendered_text": rendering.get("rendered_text"),
        "calls": rendering.get("calls", 0),
        "notes": plan.get("notes", []) if plan else [],
        "problems": list(compiled.problems),
        "plan": plan,
    }


def shown(document: dict[str, Any]) -> dict[str, Any]:
    """With its times as people of its zone read them."""
    local = {
        name.replace("_at", "_local"): in_zone(document[name], document["timezone"]) if document[name] else None
        for name in ("scheduled_at", "published_at")
    }
    return document | local


def etag(version: int) -> str:
    return f'"{version}"'


def respond(status: int, body: dict[str, Any]) -> web.Response:
    headers = {"ETag": etag(body["version"])} if "version" in body else {}
    body = body | {"trace_id": telemetry.current_trace_id() or body.get("trace_id")}
    return web.Response(status=status, body=msgspec.json.encode(body), headers=headers, content_type="application/json")


def version_wanted(request: web.Request, *, any_version: bool = False) -> int | None:
    """From If-Match. ``None`` for ``*``, where any version will do."""
    text = request.headers.get("If-Match", "").strip()
    if not text:
        words = 'If-Match is required: send the version that you have seen, like If-Match: "3"'
        raise HttpProblem(428, "Precondition Required", words, field="If-Match")
    if text == "*" and any_version:
        return None
    number = text.removeprefix("W/").strip('"')
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise HttpProblem(400, "Bad Request", 'must be one version in quotes, like "3"', field="If-Match")
    return int(number)
