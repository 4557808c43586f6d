"""The bot as a process: it stops at once with many streams, and no ticket gets into its logs and spans."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

from bot.support.listener import listening
from bot.support.process import running
from bot.support.replicas import BEARER, CHAT, SECRET, WORKSPACE
from harness.databases import Database
from harness.http_client import http_client

STREAMS = 500


async def test_five_hundred_streams_end_within_two_seconds_of_a_stop(
    seeded_database: Database, nats_url: str, nats_namespace: str
) -> None:
    async with running(seeded_database, nats_url, nats_namespace) as (process, url, _):
        port = int(url.rpartition(":")[2])

        async def connect() -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            request = f"GET /api/chats/{CHAT}/events HTTP/1.1\r\nHost: bot\r\nAuthorization: Bearer {SECRET}\r\n\r\n"
            writer.write(request.encode())
            await reader.readuntil(b": connected\n\n")
            open_writers.append(writer)
            return reader

        open_writers: list[Any] = []
        readers = []
        for _ in range(0, STREAMS, 50):
            readers += await asyncio.gather(*(connect() for _ in range(50)))

        started = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        rest = await asyncio.gather(*(reader.read() for reader in readers))
        code = await process.wait()
        taken = time.perf_counter() - started
        for writer in open_writers:
            writer.close()

    assert code == 0
    assert taken < 2
    assert {ended[-5:] for ended in rest} == {b"0\r\n\r\n"}


def read_all(folder: Path) -> str:
    return "".join(file.read_text() for file in folder.iterdir())


async def test_a_ticket_is_in_no_log_and_no_span(
    seeded_database: Database, nats_url: str, nats_namespace: str, tmp_path: Path
) -> None:
    settings = {"AUTOPOST_TRACE_DIR": str(tmp_path), "AUTOPOST_LOG_LEVEL": "debug"}
    async with running(seeded_database, nats_url, nats_namespace, **settings) as (process, url, lines):
        async with http_client(timeout=10) as http:
            ticket = (await http.post(f"{url}/api/chats/{CHAT}/tickets", headers=BEARER)).json()["ticket"]
            asked = {"workspaceId": WORKSPACE, "chatId": CHAT, "ticket": ticket}
            await http.get(f"{url}/api/chat/actions", params=asked)
            await http.get(f"{url}/api/chats/8/events", params={"ticket": ticket})
            async with listening(f"{url}/api/chats/{CHAT}/events", ticket=ticket):
                pass
        process.send_signal(signal.SIGTERM)
        await process.wait()

    spans = read_all(tmp_path)
    assert "/events" in spans
    assert ticket[:40] not in spans + "".join(lines)
    assert SECRET not in spans + "".join(lines)
