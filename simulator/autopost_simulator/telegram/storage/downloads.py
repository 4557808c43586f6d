"""Download files: a bot at ``/file/bot<token>/<path>``, the page and tests at ``/_sim/files/<unique id>``.

``POST /_sim/web`` registers content at a URL, for calls that name media by URL.
"""

from typing import Any

import msgspec
from aiohttp import web

from autopost_simulator.exchange import CallHandler
from autopost_simulator.reply import Reply
from autopost_simulator.telegram.refusal import TelegramError, named
from autopost_simulator.telegram.storage.files import TelegramFiles
from autopost_simulator.telegram.storage.remote import RemotePage, Web
from autopost_simulator.uploaded_file import serve_uploaded
from autopost_simulator.world import World


class Downloads:
    def __init__(self, world: World, files: TelegramFiles, pages: Web, exchange: CallHandler) -> None:
        self._world = world
        self._files = files
        self._pages = pages
        self._exchange = exchange

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/file/bot{token:[^/]*}/{path:.+}", self.download)
        app.router.add_get("/_sim/files/{unique_id}", self.show)
        app.router.add_post("/_sim/web", self.register)

    async def download(self, request: web.Request) -> web.StreamResponse:
        token, path = request.match_info["token"], request.match_info["path"]
        call = self._exchange.arrive("telegram", token, "download")
        if self._exchange.cut_off(request, call):
            return web.Response()
        return await self._exchange.answer(request, call, lambda: self._act(token, path))

    async def show(self, request: web.Request) -> web.StreamResponse:
        file = self._files.by_unique_id(request.match_info["unique_id"])
        content = self._files.content(file) if file else None
        if file is None or content is None:
            return _json({"error": "no such file, or its bytes are not kept any more"}, status=404)
        return serve_uploaded(content, file.content_type)

    async def register(self, request: web.Request) -> web.StreamResponse:
        try:
            page = msgspec.json.decode(await request.read(), type=RemotePage)
        except msgspec.DecodeError as error:
            return _json({"error": str(error)}, status=400)
        self._pages.register(page)
        return _json({"url": page.url, "size": len(page.body)})

    def _act(self, token: str, path: str) -> Reply:
        try:
            return self._content(token, path)
        except TelegramError as refused:
            return refused.reply()

    def _content(self, token: str, path: str) -> Reply:
        bot = self._world.bot("telegram", token)
        if bot is None:
            raise named("unauthorized")
        file = self._files.at(bot, path)
        content = self._files.content(file) if file else None
        if content is None:
            raise named("not_found")
        return Reply(status=200, body=content, verdict="accepted", content_type="application/octet-stream")


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
