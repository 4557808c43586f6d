"""`GET /status` (HTML) and `GET /v1/status` (JSON): the same read-only report, protected by a token.

A workspace token shows only its workspace; an operator token shows all workspaces, or the one of ``?workspace=``.
"""

from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
from aiohttp import web
from autopost_runtime.http.problem import HttpProblem, respond
from autopost_runtime.http.web import read_limited

from autopost_monitor.status.access import Tokens, find_viewer, forget, remember, require_same_origin, viewer_of
from autopost_monitor.status.gateway import Viewer
from autopost_monitor.status.page import HEADERS, login_page, status_page
from autopost_monitor.status.reports import Report, Reports

LONGEST_FORM = 1024
FORM_WITHIN = timedelta(seconds=5)
UNAUTHORIZED = (
    "send a valid status token: Authorization: Bearer <token>; `autopost auth status-token create` creates one"
)


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
            return _html(login_page(), 401)
        return _html(status_page(await self._report_for(request, viewer), viewer))

    async def report(self, request: web.Request) -> web.Response:
        viewer = await viewer_of(request, self._tokens)
        if viewer is None:
            return _unknown()
        body = msgspec.json.encode(await self._report_for(request, viewer))
        return web.Response(body=body, content_type="application/json", headers=HEADERS)

    async def login(self, request: web.Request) -> web.Response:
        require_same_origin(request)
        token = await _given_token(request)
        if await find_viewer(token, self._tokens) is None:
            return _html(login_page("This token is unknown, expired or revoked. Ask an operator for a new one."), 401)
        response = web.Response(status=303, headers={**HEADERS, "Location": "/status"})
        remember(response, request, token)
        return response

    async def logout(self, request: web.Request) -> web.Response:
        require_same_origin(request)
        response = web.Response(status=303, headers={**HEADERS, "Location": "/status"})
        forget(response)
        return response

    async def _report_for(self, request: web.Request, viewer: Viewer) -> Report:
        """Raises ``HttpProblem`` 400, 403 or 404."""
        asked = _asked(request.query)
        if viewer.workspace is not None:
            if asked not in (None, viewer.workspace):
                raise HttpProblem(
                    403, "Forbidden", "this token gives access to another workspace only", "workspace", HEADERS
                )
            return await self._reports.of(viewer.workspace)
        report = await self._reports.of(asked)
        if asked is not None and not report["workspaces"]:
            raise HttpProblem(404, "Not Found", "workspace not found", "workspace", HEADERS)
        return report


def _asked(query: Mapping[str, str]) -> UUID | None:
    if "workspace" not in query:
        return None
    try:
        return UUID(query["workspace"])
    except ValueError:
        raise HttpProblem(400, "Bad Request", "must be the id of a workspace (a UUID)", "workspace", HEADERS) from None


async def _given_token(request: web.Request) -> str:
    form = parse_qs((await read_limited(request, LONGEST_FORM, FORM_WITHIN)).decode("latin-1"))
    return form.get("token", [""])[0].strip()


def _unknown() -> web.Response:
    headers = {**HEADERS, "WWW-Authenticate": 'Bearer realm="autopost status"'}
    return respond(HttpProblem(401, "Unauthorized", UNAUTHORIZED, "Authorization", headers))


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", headers=HEADERS)
