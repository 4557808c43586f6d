"""The page at ``/``: static files that use the control API only."""

from pathlib import Path

from aiohttp import web

FOLDER = Path(__file__).with_name("page")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}


def add_page(app: web.Application) -> None:
    app.router.add_get("/", _page)
    app.router.add_get(r"/page/{name:[a-z_]+\.(?:js|css|svg)}", _asset)


async def _page(request: web.Request) -> web.StreamResponse:
    return web.FileResponse(FOLDER / "index.html", headers=HEADERS)


async def _asset(request: web.Request) -> web.StreamResponse:
    return web.FileResponse(FOLDER / request.match_info["name"], headers=HEADERS)
