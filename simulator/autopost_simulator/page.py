"""The page at ``/``: one file, shipped with the package, that reads the control API."""

from pathlib import Path

from aiohttp import web

PAGE = Path(__file__).with_name("page.html")


async def page(request: web.Request) -> web.StreamResponse:
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
    return web.FileResponse(PAGE, headers={"Content-Security-Policy": policy, "Cache-Control": "no-cache"})
