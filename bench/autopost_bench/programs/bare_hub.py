"""The least server of streams: a POST commits one row and wakes over NATS; whoever is woken writes to its streams.

It has no chats, no numbers and no replay. It says where it listens, and ends when its standard input does.
"""

import asyncio
import os
import sys

import asyncpg
import nats
from aiohttp import web
from autopost_cli.embedded.ports import HOST
from nats.aio.msg import Msg

SUBJECT = "bare.changes"
TABLE = "CREATE TABLE bare_changes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"
INSERT = "INSERT INTO bare_changes (body) VALUES ($1)"
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
FIRST = b": connected\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
EVERY = 15.0
BACKLOG = 1024

Streams = set[asyncio.Queue[bytes]]


async def prepare(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute(TABLE)
    await connection.close()


async def hub(database_url: str, nats_url: str) -> None:
    client = await nats.connect(nats_url)
    streams: Streams = set()

    async def on_change(message: Msg) -> None:
        frame = b"data: %b\n\n" % message.data
        for stream in streams:
            stream.put_nowait(frame)

    await client.subscribe(SUBJECT, cb=on_change)
    async with asyncpg.create_pool(database_url, min_size=1) as pool:

        async def change(request: web.Request) -> web.Response:
            body = await request.text()
            await pool.execute(INSERT, body)
            await client.publish(SUBJECT, body.encode())
            return web.json_response({"status": "accepted"}, status=201)

        app = web.Application()
        app.router.add_post("/", change)
        app.router.add_get("/events", lambda request: _stream(request, streams))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, HOST, 0, backlog=BACKLOG).start()
        os.write(1, f"http://{HOST}:{runner.addresses[0][1]}\n".encode())
        await asyncio.to_thread(sys.stdin.read)
        await runner.cleanup()
    await client.close()


async def _stream(request: web.Request, streams: Streams) -> web.StreamResponse:
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    await response.write(FIRST)
    frames: asyncio.Queue[bytes] = asyncio.Queue()
    streams.add(frames)
    try:
        while True:
            try:
                async with asyncio.timeout(EVERY):
                    frame = await frames.get()
            except TimeoutError:
                frame = KEEP_ALIVE
            await response.write(frame)
    finally:
        streams.remove(frames)


if __name__ == "__main__":
    import uvloop

    uvloop.run(hub(*sys.argv[1:3]))
