"""Admit a request: whose it is, whether it fits, and whether it can be read at all.

The tenant comes from the secret alone. Before it is known nothing is written, only counted; after that every
refusal leaves its event.
"""

import re
from datetime import timedelta
from hashlib import sha256
from typing import Any

import msgspec
from aiohttp import web
from autopost_contracts.payload import PostRequest
from autopost_runtime import metrics, telemetry
from autopost_runtime.web import Problem, read_limited

from autopost_ingest.gateway import Endpoint, Gateway

RETRY_WHEN_PAUSED = "60"
DEEPEST = 32

refusals = metrics.counter("autopost_ingress_refusals_total", "Requests refused, by reason.")

_decode = msgspec.json.Decoder(PostRequest).decode
_WHERE = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_NUL = re.compile(rb"\x00|(?<!\\)(?:\\\\)*\\u0000")


class Admission:
    def __init__(self, gateway: Gateway, body_timeout: timedelta) -> None:
        self._gateway = gateway
        self._body_timeout = body_timeout

    async def endpoint_of(self, request: web.Request) -> Endpoint:
        secret = _secret(request)
        endpoint = None
        if secret:
            digest = sha256(secret.encode()).hexdigest()
            endpoint = await self._gateway.resolve_endpoint("webhook_push", digest)
        if endpoint is None:  # one answer for no secret, a wrong one and a disabled one
            raise refuse(
                "unauthorized",
                Problem(
                    401,
                    "Unauthorized",
                    "no enabled endpoint has this secret; send it as Authorization: Bearer or X-Webhook-Secret",
                    headers={"WWW-Authenticate": "Bearer"},
                ),
            )
        if endpoint.workspace_status != "active":
            raise inactive(endpoint.workspace_status)
        return endpoint

    async def body_of(self, request: web.Request, endpoint: Endpoint) -> PostRequest:
        try:
            body = await read_limited(request, endpoint.max_payload_bytes, self._body_timeout)
        except Problem as problem:
            if problem.status in (413, 415):
                await self._told(endpoint, problem.title.lower().replace(" ", "_"))
            raise refuse("payload_rejected", problem) from None
        try:
            return read_post(body)
        except Problem as problem:
            await self._told(endpoint, "malformed")
            raise refuse("malformed", problem) from None

    async def _told(self, endpoint: Endpoint, code: str) -> None:
        trace_id = telemetry.trace_id_of(telemetry.current_traceparent())
        await self._gateway.refuse_ingress(
            endpoint, "ingress_payload_rejected", "payload_rejected", {"code": code}, trace_id
        )


def read_post(body: bytes) -> PostRequest:
    """Raises ``Problem`` 400 naming the field."""
    if _NUL.search(body):
        raise Problem(400, "Bad Request", "the NUL character is not allowed in any text")
    try:
        post = _decode(body)
    except msgspec.ValidationError as exc:
        detail, field = _located(str(exc))
        raise Problem(400, "Bad Request", detail, field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise Problem(400, "Bad Request", f"the body is not JSON: {exc}") from None
    if _depth(post.meta) > DEEPEST:
        raise Problem(400, "Bad Request", f"nested deeper than {DEEPEST} levels", field="meta")
    return post


def inactive(status: str) -> Problem:
    if status == "disabled":
        return refuse("workspace_disabled", Problem(403, "Forbidden", "the workspace is disabled"))
    return refuse(
        "workspace_paused",
        Problem(
            503,
            "Service Unavailable",
            "the workspace is paused; nothing was taken in",
            headers={"Retry-After": RETRY_WHEN_PAUSED},
        ),
    )


def refuse(reason: str, problem: Problem) -> Problem:
    refusals.add(1, {"reason": reason})
    return problem


def _secret(request: web.Request) -> str | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip() or None
    return request.headers.get("X-Webhook-Secret") or None


def _depth(value: Any) -> int:
    match value:
        case dict():
            return 1 + max(map(_depth, value.values()), default=0)
        case list():
            return 1 + max(map(_depth, value), default=0)
        case _:
            return 0


def _located(message: str) -> tuple[str, str | None]:
    """msgspec's words, with the path taken out of them."""
    where = _WHERE.search(message)
    path = where["path"] if where else ""
    detail = _WHERE.sub("", message)
    if unknown := _UNKNOWN.search(detail):
        path = f"{path}.{unknown['name']}".lstrip(".")
        detail = "there is no such field"
    return detail, path or None
