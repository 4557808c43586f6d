"""Who looks at the status page: a bearer token, or the cookie that the form has set from one. Never an address.

The database knows only the hash of a token and is asked at every request, so a revoked one is refused at once. What
is looked up is a hash of 256 random bits: how long that takes tells nothing about a token.
"""

import re
from hashlib import sha256
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web
from autopost_runtime.problem import Problem

from autopost_monitor.status_gateway import Viewer

COOKIE = "autopost_status"
_TOKEN = re.compile(r"[A-Za-z0-9_\-.~+/=]{16,200}")


class Tokens(Protocol):
    async def resolve_status_token(self, token_hash: str) -> Viewer | None: ...


async def viewer_of(request: web.Request, tokens: Tokens) -> Viewer | None:
    """``None`` without a token that opens anything."""
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    token = given.strip() if kind.lower() == "bearer" else request.cookies.get(COOKIE, "")
    return await holder(token, tokens)


async def holder(token: str, tokens: Tokens) -> Viewer | None:
    if not _TOKEN.fullmatch(token):
        return None
    return await tokens.resolve_status_token(sha256(token.encode()).hexdigest())


def remember(response: web.StreamResponse, request: web.Request, token: str) -> None:
    """For this browser's session. Over plain HTTP a browser keeps it only for its own machine."""
    response.set_cookie(
        COOKIE, token, path="/", httponly=True, samesite="Strict", secure=not _is_loopback(request.host)
    )


def forget(response: web.StreamResponse) -> None:
    response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")


def refuse_strangers(request: web.Request) -> None:
    """Raises ``Problem`` 403 when a form of another site was sent here. A browser says so, one way or the other."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        ours = site in ("same-origin", "none")
    else:
        ours = origin is None or urlsplit(origin).netloc == request.host
    if not ours:
        raise Problem(403, "Forbidden", "this form is answered only on its own page", field="Origin")


def _is_loopback(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
