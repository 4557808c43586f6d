"""Parts and targets for tests of MAX, and a server with scripted responses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from autopost_adapters.base import Target
from autopost_adapters.max.send import MaxAdapter
from autopost_contracts.payload import Button
from autopost_contracts.plan import PlannedMedia
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient

from adapters.conftest import PATIENT

TOKEN = "canary-canary-canary"
TARGET = Target(chat="-70", token=Secret(TOKEN))
BUTTONS = ((Button("Go", "https://example.org/"),),)
KEYBOARD = {
    "type": "inline_keyboard",
    "payload": {"buttons": [[{"type": "link", "text": "Go", "url": "https://example.org/"}]]},
}


def item(kind: Any, caption: str = "", **fields: Any) -> PlannedMedia:
    return PlannedMedia(type=kind, caption=caption, **({"blob_ref": "sha256:x"} | fields))


@asynccontextmanager
async def serving(handle: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Hosts:
    """The API and a host for uploads, apart as they are in life; each answers as it is told, and keeps who asked."""

    def __init__(self) -> None:
        self.api: list[web.Request] = []
        self.uploads: list[tuple[web.Request, bytes]] = []
        self.link: dict[str, Any] = {"token": "with-link"}
        self.taken = web.json_response({"photos": {"k/==": {"token": "of-photo"}}})
        self.adapter: MaxAdapter
        self._upload_url = ""

    async def on_api(self, request: web.Request) -> web.Response:
        self.api.append(request)
        if request.path == "/uploads":
            return web.json_response({"url": f"{self._upload_url}/put?sig=1"} | self.link)
        return web.json_response({"message": {"body": {"mid": "mid.1"}}})

    async def on_upload(self, request: web.Request) -> web.Response:
        self.uploads.append((request, await request.read()))
        return self.taken

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Hosts"]:
        async with serving(self.on_upload) as self._upload_url, serving(self.on_api) as url, HttpClient() as client:
            self.adapter = MaxAdapter(client, url, PATIENT, PATIENT)
            yield self


def two_hosts() -> Any:
    return Hosts().running()
