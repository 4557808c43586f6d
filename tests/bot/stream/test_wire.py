"""The bytes of the stream, as Chromium and proxies need them."""

import asyncio
import re
import time
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from autopost_bot.stream.serve import StreamTimes
from autopost_runtime.telemetry import metrics
from bot.conftest import StartReplica
from bot.support.listener import listening
from bot.support.replicas import BEARER, SECRET, Replica
from harness.databases import Database
from harness.eventually import eventually

QUICK = StreamTimes(keep_alive=timedelta(milliseconds=50))


async def first_bytes(url: str, version: str = "1.0", *headers: str) -> tuple[str, float]:
    """Head and first bytes of the body, and the seconds until they came."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = [f"GET {path} HTTP/{version}", "Host: bot", f"Authorization: Bearer {SECRET}", *headers, "", ""]
    started = time.perf_counter()
    writer.write("\r\n".join(lines).encode())
    received = await reader.readuntil(b": connected\n\n")
    taken = time.perf_counter() - started
    writer.close()
    return received.decode(), taken


async def test_headers_and_first_bytes_come_at_once_on_an_idle_chat(bot: Replica) -> None:
    await bot.start()
    await first_bytes(bot.events())  # the endpoint is cached now

    received, taken = await first_bytes(bot.events())

    head, _, body = received.partition("\r\n\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.splitlines()[1:])}
    assert head.startswith("HTTP/1.0 200 OK\r\n")
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert not {"content-length", "content-encoding", "etag"} & set(headers)
    assert body == "retry: 2000\nid: 1\n\n: connected\n\n"
    assert taken < 0.1


async def test_an_encoding_that_the_client_accepts_is_not_used(bot: Replica) -> None:
    received, _ = await first_bytes(bot.events(), "1.1", "Accept-Encoding: gzip, br")

    assert "Transfer-Encoding: chunked\r\n" in received
    assert "encoding: gzip" not in received.lower()


async def test_an_event_is_an_id_and_one_line_of_data_without_an_event_field(bot: Replica) -> None:
    parts = urlsplit(bot.events())
    await bot.start(displayText="две\nстроки", payload={"text": "a\nb\r\nc"})
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {parts.path}?after=0 HTTP/1.0\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode())

    received = await reader.readuntil(b"}}\n\n")
    writer.close()

    assert b"retry: 2000\nid: 0\n\n: connected\n\nid: 1\ndata: {" in received
    assert re.search(rb'\nid: 1\ndata: \{"type":"bot_action","action":\{.*\}\}\n\n$', received)
    assert b"event:" not in received


async def test_a_silent_stream_sends_a_comment_now_and_then(start_replica: StartReplica) -> None:
    bot = await start_replica(times=QUICK)

    async with listening(bot.events(), headers=BEARER) as client:
        await eventually(lambda: client.comments.count("keep-alive") >= 3)
        await bot.start()
        await client.heard(1)

    assert client.retry == 2000


async def test_an_open_stream_counts_as_a_request_that_ended_with_its_first_bytes(bot: Replica) -> None:
    def counted() -> list[str]:
        lines = metrics.render().decode().splitlines()
        return [line for line in lines if "requests_seconds_count" in line and "/events" in line]

    before = counted()
    async with listening(bot.events(), headers=BEARER):
        await eventually(lambda: counted() != before)


async def test_a_stream_ends_by_itself_and_its_client_goes_on_from_its_last_id(start_replica: StartReplica) -> None:
    bot = await start_replica(times=StreamTimes(lifetime=timedelta(milliseconds=200)))
    async with listening(bot.events(), headers=BEARER) as client:
        await bot.start("a")
        await client.heard(1)
        await eventually(lambda: client.over)
    await bot.start("b")

    async with listening(bot.events(), headers={**BEARER, "Last-Event-ID": client.last_id or ""}) as again:
        await again.heard(1)

    assert again.actions == [("b", "processing")]


def test_the_lives_of_streams_differ_by_a_tenth() -> None:
    lives = [StreamTimes().drawn_lifetime() for _ in range(1000)]

    assert 3240 <= min(lives) < 3300
    assert 3900 < max(lives) <= 3960


async def test_a_stream_beyond_the_limit_is_told_to_come_back_and_then_gets_in(start_replica: StartReplica) -> None:
    bot = await start_replica(stream_clients=1, times=QUICK)
    async with (
        listening(bot.events(), headers=BEARER),
        listening(bot.events(), headers=BEARER, connected=False) as second,
    ):
        await eventually(lambda: second.over)

    assert (second.status, second.retry, second.events) == (200, 15_000, [])
    await eventually(lambda: bot.hub.clients == 0)
    async with listening(bot.events(), headers=BEARER) as third:
        assert third.comments[0] == "connected"


async def test_while_the_service_stops_a_stream_is_told_to_come_back(bot: Replica) -> None:
    bot.hub.close()

    answer = await bot.http.get(bot.events(), headers=BEARER)

    assert (answer.status_code, answer.text) == (200, "retry: 15000\n\n")


async def test_while_the_database_is_away_a_stream_is_told_to_come_back(
    bot: Replica, seeded_database: Database
) -> None:
    await seeded_database.pool.execute("ALTER FUNCTION chat_heads(uuid[], text[]) RENAME TO chat_heads_gone")
    await seeded_database.pool.execute(
        "CREATE FUNCTION chat_heads(uuid[], text[]) RETURNS bigint[] LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P03'; END $$;"
        " GRANT EXECUTE ON FUNCTION chat_heads(uuid[], text[]) TO autopost_bot"
    )

    answer = await bot.http.get(bot.events(), headers=BEARER)

    assert (answer.status_code, answer.text) == (200, "retry: 15000\n\n")
    assert bot.hub.clients == 0


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=9223372036854775808", "after="])
async def test_a_cursor_that_is_no_number_is_refused(bot: Replica, query: str) -> None:
    answer = await bot.http.get(f"{bot.events()}?{query}", headers=BEARER)

    assert (answer.status_code, answer.json()["field"]) == (422, "after")
