"""A web server on this machine that shows what a test puts there, and small files of every kind."""

import struct
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from urllib.parse import quote

from aiohttp import web
from autopost_runtime.fetch.addresses import Guard, Networks
from harness.telegram_media import png

HERE: Networks = (ip_network("127.0.0.1"),)
GUARD = Guard(HERE)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PNG = png(40, 30)
GIF = b"GIF89a" + struct.pack("<HH", 7, 5) + bytes(20)
JPEG = b"".join(
    (
        *(b"\xff\xd8", b"\xff\xe1" + struct.pack(">H", 6002) + bytes(6000), b"\xff\xfe" + struct.pack(">H", 4) + b"hi"),
        *(b"\xff\xff\xc2" + struct.pack(">HBHH", 8, 8, 300, 400), bytes(50)),
    )
)
MP4 = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + bytes(64)
PDF = b"%PDF-1.7\n" + b"price list\n" * 20


class Pictures:
    """``hits`` counts by path; what is not put there is not found."""

    def __init__(self) -> None:
        self.url = ""
        self.hits: Counter[str] = Counter()
        self._handlers: dict[str, Handler] = {}

    def put(self, path: str, body: bytes, status: int = 200, **headers: str) -> str:
        """Its URL."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}

        async def show(_: web.Request) -> web.StreamResponse:
            return web.Response(body=body, status=status, headers=given)

        return self.answer(path, show)

    def answer(self, path: str, handler: Handler) -> str:
        self._handlers[path] = handler
        return f"{self.url}{quote(path)}"

    async def show(self, request: web.Request) -> web.StreamResponse:
        self.hits[request.path] += 1
        handler = self._handlers.get(request.path)
        return web.Response(status=404) if handler is None else await handler(request)


@asynccontextmanager
async def pictures(host: str = "127.0.0.1") -> AsyncIterator[Pictures]:
    made = Pictures()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.show)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0).start()
        made.url = f"http://{host}:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()
