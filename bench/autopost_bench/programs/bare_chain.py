"""The least that a post can do on its way: a POST, a commit, a JetStream wakeup, a call. Two programs, as ours are two.

``webhook`` takes a POST in, commits one row and wakes; ``caller`` is woken and calls the provider; ``answerer`` reads
the row and commits another one before it does, as a bot must. Each says when it is ready, and ends when its standard
input does.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable

import aiohttp
import asyncpg
import nats
from aiohttp import web
from autopost_cli.embedded.ports import HOST
from nats.errors import TimeoutError as NothingCame
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig

STREAM = "BARE"
SUBJECT = "bare.wakeup"
DURABLE = "caller"
TABLE = "CREATE TABLE bare_posts (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"
NEWEST = "SELECT body FROM bare_posts ORDER BY id DESC LIMIT 1"
INSERT = "INSERT INTO bare_posts (body) VALUES ($1)"


async def prepare(database_url: str, nats_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute(TABLE)
    await connection.close()
    client = await nats.connect(nats_url)
    await client.jetstream().add_stream(StreamConfig(name=STREAM, subjects=[SUBJECT], storage=StorageType.MEMORY))
    await client.jetstream().add_consumer(STREAM, ConsumerConfig(durable_name=DURABLE, ack_policy=AckPolicy.NONE))
    await client.close()


async def webhook(database_url: str, nats_url: str, _: str) -> None:
    client = await nats.connect(nats_url)
    async with asyncpg.create_pool(database_url, min_size=1) as pool:

        async def receive(request: web.Request) -> web.Response:
            body = await request.text()
            await pool.execute(INSERT, body)
            await client.publish(SUBJECT)
            return web.json_response({"status": "accepted"}, status=202)

        app = web.Application()
        app.router.add_post("/", receive)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, HOST, 0).start()
        await _until_told(f"http://{HOST}:{runner.addresses[0][1]}/")
        await runner.cleanup()
    await client.close()


async def caller(_: str, nats_url: str, provider: str) -> None:
    async def nothing() -> None:
        """A caller has nothing to read."""

    await _calling(nats_url, provider, nothing)


async def answerer(database_url: str, nats_url: str, provider: str) -> None:
    async with asyncpg.create_pool(database_url, min_size=1) as pool:

        async def read_and_commit() -> None:
            found = await pool.fetchval(NEWEST)
            await pool.execute(INSERT, found)

        await _calling(nats_url, provider, read_and_commit)


async def _calling(nats_url: str, provider: str, before: Callable[[], Awaitable[None]]) -> None:
    client = await nats.connect(nats_url)
    wakeups = await client.jetstream().pull_subscribe_bind(DURABLE, STREAM)
    async with aiohttp.ClientSession() as session:

        async def call() -> None:
            while True:
                with contextlib.suppress(NothingCame):
                    for _ in await wakeups.fetch(1, timeout=5):
                        await before()
                        async with session.post(provider, json={"chat_id": 1, "text": "woken"}) as answer:
                            await answer.read()

        calling = asyncio.create_task(call())
        await _until_told("ready")
        calling.cancel()
        await asyncio.wait({calling})
    await client.close()


async def _until_told(ready: str) -> None:
    os.write(1, f"{ready}\n".encode())
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    import uvloop

    uvloop.run({"webhook": webhook, "caller": caller, "answerer": answerer}[sys.argv[1]](*sys.argv[2:5]))
