"""What a platform should never answer, and a MAX that answers so in the chats that a test names."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from msgspec import Struct


class OddAnswer(Struct, frozen=True):
    status: int
    body: bytes
    headers: dict[str, str] = {}


ODD_ANSWERS = {
    "a NUL in the id": OddAnswer(200, rb'{"message":{"body":{"mid":"m\u0000"}}}'),
    "a lone surrogate in the id": OddAnswer(200, rb'{"message":{"body":{"mid":"\ud800"}}}'),
    "an endless id": OddAnswer(200, b'{"message":{"body":{"mid":"%s"}}}' % (b"m" * 900_000)),
    "an endless number": OddAnswer(200, b'{"message":{"body":{"mid":%s}}}' % (b"9" * 5_000)),
    "a wait of 2e13 seconds": OddAnswer(429, b"{}", {"Retry-After": "20000000000000"}),
    "a wait of nine digits": OddAnswer(429, b"{}", {"Retry-After": "999999999"}),
    "900 KB of words": OddAnswer(400, b'{"code":"chat.denied","message":"%s"}' % (b"x\x01" * 450_000)),
    "NULs in words": OddAnswer(403, rb'{"code":"chat.denied\u0000","message":"\u0000\ud800"}'),
    "lists for words": OddAnswer(400, b'{"code":[1],"message":{"a":[]}}'),
    "a deep answer": OddAnswer(200, b"[" * 100_000),
}


@asynccontextmanager
async def odd_max(answers: Mapping[str, OddAnswer], token: str) -> AsyncIterator[str]:
    """By chat; all others are sound. ``token`` is of bot 1, every other of bot 2."""
    posted = 0

    async def receive(request: web.Request) -> web.Response:
        nonlocal posted
        posted += 1
        if odd := answers.get(request.query["chat_id"]):
            return web.Response(status=odd.status, headers=odd.headers, body=odd.body)
        return web.json_response({"message": {"body": {"mid": f"mid.{posted}"}}})

    async def show(_: web.Request) -> web.Response:
        return web.json_response({"messages": []})

    async def identify(request: web.Request) -> web.Response:
        return web.json_response({"user_id": 1 if request.headers["Authorization"] == token else 2})

    app = web.Application()
    app.router.add_get("/max/me", identify)
    app.router.add_get("/max/messages", show)
    app.router.add_post("/max/messages", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
