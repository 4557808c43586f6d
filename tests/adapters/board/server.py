"""The board itself: what is pinned to it, and the one thing that shall go wrong next."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import BodyPartReader, web
from autopost_simulator.exchange import break_off, dribble, respond
from autopost_simulator.hangup import drop, until_hung_up
from autopost_simulator.reply import Reply, accepted, garbage, html, refused

Obey = Callable[[web.Request], Awaitable[Reply]]


class Board:
    def __init__(self) -> None:
        self.notices: list[dict[str, Any]] = []
        self.trouble: dict[str, Any] = {}
        self._pictures: dict[str, str] = {}

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/rooms/{room}", self._pin)
        app.router.add_get("/me", self._tell)
        return app

    async def _pin(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._obey)

    async def _tell(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._me)

    async def _answer(self, request: web.Request, obey: Obey) -> web.StreamResponse:
        if self.trouble.get("reset") == "before":
            drop(request)
            return web.Response()
        reply = await obey(request) if self._obeys() else self._spoiled()
        if self.trouble.get("reset"):
            drop(request)
        elif self.trouble.get("hang"):
            await until_hung_up(request)
        elif self.trouble.get("half"):
            return await break_off(request, reply)
        elif pause := self.trouble.get("drip"):
            return await dribble(request, reply, pause)
        return respond(reply)

    async def _me(self, request: web.Request) -> Reply:
        return self._spoiled() if self.trouble.get("garbage") else accepted({"board": True})

    def _obeys(self) -> bool:
        return not self.trouble or any(self.trouble.get(name) for name in ("accept", "drip", "reset"))

    def _spoiled(self) -> Reply:
        if "html" in self.trouble:
            return html(self.trouble["html"])
        if "status" in self.trouble:
            error = self.trouble.get("error", "")
            return refused(self.trouble["status"], {"error": error}, error, self.trouble.get("retry_after"))
        return garbage()

    async def _obey(self, request: web.Request) -> Reply:
        told: dict[str, Any] = {}
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            content = bytes(await part.read())
            if part.name == "notice":
                told = msgspec.json.decode(content)
            else:
                told["pictures"] = [self._keep(content) if one == part.name else one for one in told["pictures"]]
        number = len(self.notices) + 1
        media = [self._pictures[one] for one in told["pictures"]]
        self.notices.append({"id": str(number), "text": told["text"], "media": media})
        reply = accepted({"notice": number, "pictures": told["pictures"]})
        return self._spoiled() if self.trouble.get("garbage") else reply

    def _keep(self, content: bytes) -> str:
        name = f"kept-{len(self._pictures)}"
        self._pictures[name] = hashlib.sha256(content).hexdigest()
        return name
