"""Error responses of the action API."""

from datetime import timedelta

from autopost_runtime.http.endpoint_cache import Endpoint
from autopost_runtime.http.problem import HttpProblem

RETRY_WHEN_PAUSED = "60"

NO_SECRET = "unknown or missing secret; send it as Authorization: Bearer or X-Webhook-Secret"  # noqa: S105  a text


def unauthorized(
    detail: str = NO_SECRET,
) -> HttpProblem:
    return HttpProblem(401, "Unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


def bad_ticket() -> HttpProblem:
    """One answer for every reason, so that a ticket cannot be probed."""
    return unauthorized("the ticket is not valid for this chat or has expired; get a new one")


def foreign_workspace() -> HttpProblem:
    return HttpProblem(403, "Forbidden", "must be the workspace of the secret", field="workspaceId")


def workspace_disabled() -> HttpProblem:
    return HttpProblem(403, "Forbidden", "workspace is disabled")


def workspace_paused() -> HttpProblem:
    return HttpProblem(
        503,
        "Service Unavailable",
        "workspace is paused; nothing was started, retry later",
        headers={"Retry-After": RETRY_WHEN_PAUSED},
    )


def rate_limited(endpoint: Endpoint, wait: timedelta) -> HttpProblem:
    rate = f" ({endpoint.ingress_rps:g} requests/s)" if endpoint.ingress_rps else ""
    seconds = max(1, -(-wait // timedelta(seconds=1)))
    return HttpProblem(
        429,
        "Too Many Requests",
        f"rate limit exceeded for this endpoint{rate}",
        headers={"Retry-After": str(seconds)},
    )


def unknown_action(action_id: str) -> HttpProblem:
    detail = f"Действие с actionId '{action_id}' не найдено. Сначала вызовите start."
    return HttpProblem(404, "unknown actionId", detail, field="actionId")


def invalid(field: str, reason: str) -> HttpProblem:
    return HttpProblem(422, "Unprocessable Content", reason, field=field)
