"""Authentication of the status page: a bearer token, or a cookie with it that the form sets. Never in a URL.

The database has only the hash of a token and is queried for every request, so a revoked token is refused at once. The
lookup uses a hash of 256 random bits, so its timing reveals nothing about a token.
"""

import re
from hashlib import sha256
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web
from autopost_runtime.http.problem import HttpProblem

from autopost_monitor.status.gateway import Viewer

COOKIE = "autopost_status"
_TOKEN = re.compile(r"[A-Za-z0-9_\-.~+/=]{16,200}")


class Tokens(Protocol):
    async def resolve_status_token(self, token_hash: str) -> Viewer | None: ...


async def viewer_of(request: web.Request, tokens: Tokens) -> Viewer | None:
    """``None`` without a valid token."""
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    token = given.strip() if kind.lower() == "bearer" else request.cookies.get(COOKIE, "")
    return await find_viewer(token, tokens)


async def find_viewer(token: str, tokens: Tokens) -> Viewer | None:
    if not _TOKEN.fullmatch(token):
        return None
    return await tokens.resolve_status_token(sha256(token.encode()).hexdigest())


def remember(response: web.StreamResponse, request: web.Request, token: str) -> None:
    """Set a session cookie; ``secure`` except on the local machine."""
    response.set_cookie(
        COOKIE, token, path="/", httponly=True, samesite="Strict", secure=not _is_loopback(request.host)
    )


def forget(response: web.StreamResponse) -> None:
    response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")


def require_same_origin(request: web.Request) -> None:
    """Raises ``HttpProblem`` 403 for a form of another site, by the ``Sec-Fetch-Site`` or ``Origin`` header."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        ours = site in ("same-origin", "none")
    else:
        ours = origin is None or urlsplit(origin).netloc == request.host
    if not ours:
        raise HttpProblem(
            403, "Forbidden", "the form must be sent from the status page itself, not from another site", field="Origin"
        )


def _is_loopback(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
