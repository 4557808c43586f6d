"""`GET /status` for people, `GET /v1/status` for programs: the same report, read-only, behind a token.

A workspace's token shows that workspace whatever the request asks for; the operator's shows all, or the one that
``?workspace=`` names.
"""

from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_runtime.problem import Problem, respond
from autopost_runtime.web import read_limited

from autopost_monitor.page import HEADERS, door, status_page
from autopost_monitor.status_access import Tokens, forget, holder, refuse_strangers, remember, viewer_of
from autopost_monitor.status_gateway import Viewer
from autopost_monitor.status_reports import Report, Reports

LONGEST_FORM = 1024
FORM_WITHIN = timedelta(seconds=5)
UNKNOWN = "expected a status token that is neither expired nor revoked"


class StatusPage:
    def __init__(self, tokens: Tokens, reports: Reports) -> None:
        self._tokens = tokens
        self._reports = reports

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/status", self.page),
            web.get("/v1/status", self.report),
            web.post("/status/login", self.login),
            web.post("/status/logout", self.logout),
        ]

    async def page(self, request: web.Request) -> web.Response:
        viewer = await viewer_of(request, self._tokens)
        if viewer is None:
            return _html(door(), 401)
        return _html(status_page(await self._look(request, viewer), viewer))

    async def report(self, request: web.Request) -> web.Response:
        viewer = await viewer_of(request, self._tokens)
        if viewer is None:
            return _unknown()
        body = msgspec.json.encode(await self._look(request, viewer))
        return web.Response(body=body, content_type="application/json", headers=HEADERS)

    async def login(self, request: web.Request) -> web.Response:
        refuse_strangers(request)
        token = await _given_token(request)
        if await holder(token, self._tokens) is None:
            return _html(door("This token opens nothing: it is unknown, expired or revoked."), 401)
        response = web.Response(status=303, headers={**HEADERS, "Location": "/status"})
        remember(response, request, token)
        return response

    async def logout(self, request: web.Request) -> web.Response:
        refuse_strangers(request)
        response = web.Response(status=303, headers={**HEADERS, "Location": "/status"})
        forget(response)
        return response

    async def _look(self, request: web.Request, viewer: Viewer) -> Report:
        """Raises ``Problem`` 400, 403 or 404."""
        asked = _asked(request.query)
        if viewer.workspace is not None:
            if asked not in (None, viewer.workspace):
                raise Problem(403, "Forbidden", "this token is for another workspace", "workspace", HEADERS)
            return await self._reports.of(viewer.workspace)
        report = await self._reports.of(asked)
        if asked is not None and not report["workspaces"]:
            raise Problem(404, "Not Found", "there is no such workspace", "workspace", HEADERS)
        return report


def _asked(query: Mapping[str, str]) -> UUID | None:
    if "workspace" not in query:
        return None
    try:
        return UUID(query["workspace"])
    except ValueError:
        raise Problem(400, "Bad Request", "expected the id of a workspace", "workspace", HEADERS) from None


async def _given_token(request: web.Request) -> str:
    form = parse_qs((await read_limited(request, LONGEST_FORM, FORM_WITHIN)).decode("latin-1"))
    return form.get("token", [""])[0].strip()


def _unknown() -> web.Response:
    headers = {**HEADERS, "WWW-Authenticate": 'Bearer realm="autopost status"'}
    return respond(Problem(401, "Unauthorized", UNKNOWN, "Authorization", headers))


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", headers=HEADERS)
