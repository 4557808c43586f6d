"""Bodies and heads that are too large, too slow, encoded, lied about or of another type. Real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from harness.databases import Database
from harness.eventually import eventually
from ingest.support.ingest_client import TABLES
from ingest.support.ingest_server import LONG, MOMENT, RawIngestClient, answer_of, head, opened

LIMIT = 262_144
HALF_A_HEAD = b"POST /v1/posts HTTP/1.1\r\nHost: x\r\nX-Slow: "
LATE = {"type": "about:blank", "title": "Request Timeout", "detail": "the request head was not complete in time"}
FULL = {"type": "about:blank", "title": "Service Unavailable", "detail": "too many open connections, retry later"}
REJECTED = "SELECT error ->> 'code' FROM events WHERE action = 'ingress_payload_rejected'"


@pytest.fixture
async def client(seeded_database: Database) -> AsyncIterator[RawIngestClient]:
    async with opened(seeded_database) as client:
        yield client


@pytest.mark.parametrize(
    "pieces",
    [
        (head(f"Content-Length: {LIMIT + 1}"),),
        (head("Content-Length: 999999999999"),),
        (head("Transfer-Encoding: chunked"), b"40001\r\n" + b" " * (LIMIT + 1)),
        (head("Transfer-Encoding: chunked"), *[b"8000\r\n" + b" " * 0x8000 + b"\r\n"] * 9),
    ],
    ids=["said", "said a lot", "one chunk", "many chunks"],
)
async def test_a_body_over_the_limit_is_413_as_soon_as_it_is_known(
    client: RawIngestClient, pieces: tuple[bytes, ...]
) -> None:
    """None of these bodies comes to its end, so nobody can have waited for it."""
    status, told = await client.raw(*pieces)

    assert (status, told["title"]) == (413, "Content Too Large")
    assert await client.sql(REJECTED) == "content_too_large"
    assert await client.sql("SELECT stats_json ->> 'payload_rejected' FROM ingest_runs") == "1"
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_body_of_exactly_the_limit_is_read(client: RawIngestClient) -> None:
    body = b'{"text": "a"}'.ljust(LIMIT)

    status, _ = await client.raw(head(f"Content-Length: {LIMIT}"), body)

    assert status == 202


async def test_an_endpoint_may_take_more_than_aiohttp_would(client: RawIngestClient) -> None:
    size = 2 * 1024 * 1024
    await client.sql("UPDATE workspace_endpoints SET max_payload_bytes = $1", size)

    status, _ = await client.raw(head(f"Content-Length: {size}"), b'{"text": "a"}'.ljust(size))

    assert status == 202


async def test_a_body_shorter_than_its_content_length_never_becomes_a_post(client: RawIngestClient) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    writer.write(head("Content-Length: 100") + b'{"text": "a"}')
    writer.close()

    assert await reader.read() == b""
    assert await eventually(lambda: client.sql(REJECTED)) == "malformed"
    assert await client.rows() == dict.fromkeys(TABLES, 0)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("Content-Encoding: gzip", "Content-Encoding"),
        ("Content-Encoding: identity", "Content-Encoding"),
        ("Content-Encoding:", "Content-Encoding"),
        ("Content-Type: text/plain", "Content-Type"),
        ("Content-Type: application/x-www-form-urlencoded", "Content-Type"),
        ("Content-Type: application/json; charset=windows-1251", "Content-Type"),
        ("Content-Type: nonsense", "Content-Type"),
        ("Content-Type: application/json;" + "(" * 4000, "Content-Type"),  # parsing it would take a second
    ],
)
async def test_an_encoded_body_or_another_type_is_415(client: RawIngestClient, header: str, field: str) -> None:
    status, told = await client.raw(head(header, "Content-Length: 13"), b'{"text": "a"}')

    assert (status, told["field"]) == (415, field)
    assert await client.sql(REJECTED) == "unsupported_media_type"
    assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_body_that_says_it_is_compressed_on_the_way_is_415(client: RawIngestClient) -> None:
    status, told = await client.raw(head("Transfer-Encoding: gzip, chunked"), b"0\r\n\r\n")

    assert (status, told["field"]) == (415, "Transfer-Encoding")


@pytest.mark.parametrize(
    "header",
    [
        "Content-Type: application/json",
        "Content-Type: application/json; charset=UTF-8",
        "Content-Type: application/vnd.shop+json",
        "X-Nothing: said",
    ],
)
async def test_json_is_taken_under_each_of_its_names_and_without_one(client: RawIngestClient, header: str) -> None:
    status, _ = await client.raw(head(header, "Content-Length: 13"), b'{"text": "a"}')

    assert status == 202


@pytest.mark.parametrize(
    ("within", "idle"), [(MOMENT, LONG), (LONG, MOMENT)], ids=["it takes too long", "it pauses too long"]
)
async def test_a_body_that_comes_too_slowly_is_408(
    seeded_database: Database, within: timedelta, idle: timedelta
) -> None:
    async with opened(seeded_database, body_timeout=within, settings={"body_idle": idle}) as client:
        async with asyncio.timeout(LONG.total_seconds() / 2):
            status, _ = await client.raw(head("Content-Length: 100"), b"{")

        assert status == 408
        assert await client.sql(REJECTED) == "too_slow"
        assert await client.rows() == dict.fromkeys(TABLES, 0)


async def test_a_steady_drip_does_not_renew_the_time_of_a_body(seeded_database: Database) -> None:
    async with opened(seeded_database, body_timeout=MOMENT * 2, settings={"body_idle": MOMENT}) as client:
        status, _ = await client.raw(head("Content-Length: 100"), *[b" "] * 50, pause=MOMENT / 20)

        assert status == 408


@pytest.mark.parametrize("start", [b"", b"P", HALF_A_HEAD])
async def test_a_head_that_does_not_come_to_its_end_is_408(seeded_database: Database, start: bytes) -> None:
    async with opened(seeded_database, head_timeout=MOMENT) as client:
        status, told = await client.raw(start)

    assert (status, told) == (408, {**LATE, "status": 408})


@pytest.mark.parametrize("start", [b"P", HALF_A_HEAD])
async def test_half_a_head_in_one_piece_with_the_request_before_it_is_408(
    seeded_database: Database, start: bytes
) -> None:
    async with opened(seeded_database, head_timeout=MOMENT) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        body = b'{"text": "a"}'
        writer.write(head(f"Content-Length: {len(body)}") + body + start)

        async with asyncio.timeout(10):
            answers = [(await answer_of(reader))[0], (await answer_of(reader))[0], await reader.read()]
        writer.close()

    assert answers == [202, 408, b""]


@asynccontextmanager
async def slow(
    client: RawIngestClient, *beginnings: bytes
) -> AsyncIterator[list[tuple[asyncio.StreamWriter, asyncio.Task[bytes]]]]:
    """Connections with half a request on each, and a task that is done when it is answered or closed."""
    connections = [await asyncio.open_connection("127.0.0.1", client.port) for _ in beginnings]
    for (_, writer), beginning in zip(connections, beginnings, strict=True):
        writer.write(beginning)
    ends = [asyncio.create_task(reader.read(1)) for reader, _ in connections]
    yield [(writer, end) for (_, writer), end in zip(connections, ends, strict=True)]
    for _, writer in connections:
        writer.close()
    await asyncio.gather(*ends, return_exceptions=True)


async def test_heads_that_drip_keep_no_one_else_waiting(seeded_database: Database) -> None:
    """Who was kept waiting would be answered when the slow ones have ended."""
    await seeded_database.pool.execute("UPDATE workspace_endpoints SET ingress_rps = NULL")
    async with opened(seeded_database, head_timeout=LONG) as client, slow(client, *[HALF_A_HEAD] * 200) as dripping:

        async def drip() -> None:
            while True:
                for writer, _ in dripping:
                    writer.write(b"X")
                await asyncio.sleep(0.05)

        drops = asyncio.create_task(drip())
        answers = await asyncio.gather(*(client.post({"text": str(number)}) for number in range(50)))
        ended = sum(end.done() for _, end in dripping)
        drops.cancel()

    assert [answer.status_code for answer in answers] == [202] * 50
    assert ended == 0


@pytest.mark.parametrize(
    "limits",
    [{"connections": 5}, {"connections_per_address": 5}, {"connections": 5, "connections_per_address": 5}],
    ids=["all", "one address", "both"],
)
async def test_connections_are_counted_and_those_on_top_are_503(
    seeded_database: Database, limits: dict[str, int]
) -> None:
    async with opened(seeded_database, **limits) as client:
        many = [await asyncio.open_connection("127.0.0.1", client.port) for _ in range(6)]
        refused = await answer_of(many[5][0])

        for _, writer in many:
            writer.close()

        async def free_again() -> bool:
            return (await client.raw(head("Content-Length: 13"), b'{"text": "a"}'))[0] in (200, 202)

        assert refused == (503, {**FULL, "status": 503})
        await eventually(free_again)


async def test_a_dripping_head_is_not_renewed_by_its_drops(seeded_database: Database) -> None:
    async with opened(seeded_database, head_timeout=MOMENT) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)

        async def drip() -> None:
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.01)

        writer.write(HALF_A_HEAD)
        dripping = asyncio.create_task(drip())
        async with asyncio.timeout(10):
            status, _ = await answer_of(reader)
        dripping.cancel()
        writer.close()

    assert status == 408


async def test_an_idle_connection_between_two_posts_is_not_taken_for_a_slow_head(seeded_database: Database) -> None:
    limit = timedelta(seconds=1)
    async with opened(seeded_database, head_timeout=limit) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        answers = []
        for number in range(2):
            body = b'{"text": "%d"}' % number
            whole = head(f"Content-Length: {len(body)}") + body
            for piece in (whole[:20], whole[20:40], whole[40:]):
                writer.write(piece)
                await asyncio.sleep(0)
            answers.append((await answer_of(reader))[0])
            with pytest.raises(TimeoutError):  # nothing more is said in twice the time of a head
                await asyncio.wait_for(reader.read(), limit.total_seconds() * 2)
        writer.close()

    assert answers == [202, 202]


@pytest.mark.parametrize("pause", [timedelta(), MOMENT * 2], ids=["at once", "slowly"])
async def test_a_body_that_comes_after_its_answer_is_not_taken_for_a_slow_head(
    seeded_database: Database, pause: timedelta
) -> None:
    async with opened(seeded_database, head_timeout=MOMENT) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(head("Content-Length: 40000", secret="wrong"))
        answers = [(await answer_of(reader))[0]]
        for piece in (b" " * 30000, b" " * 10000):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause.total_seconds())
        with pytest.raises(TimeoutError):  # nothing more is said in twice the time of a head
            await asyncio.wait_for(reader.read(), MOMENT.total_seconds() * 2)
        writer.write(head("Content-Length: 13") + b'{"text": "a"}')
        answers.append((await answer_of(reader))[0])
        writer.close()

    assert answers == [401, 202]


@pytest.mark.parametrize("start", [b"P", HALF_A_HEAD])
async def test_half_a_head_behind_a_body_that_came_after_its_answer_is_408(
    seeded_database: Database, start: bytes
) -> None:
    async with opened(seeded_database, head_timeout=MOMENT) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(head("Content-Length: 40000", secret="wrong"))
        answers = [(await answer_of(reader))[0]]
        writer.write(b" " * 40000 + start)

        async with asyncio.timeout(10):
            answers.append((await answer_of(reader))[0])
        writer.close()

    assert answers == [401, 408]


async def test_many_slow_senders_keep_no_one_else_waiting(seeded_database: Database) -> None:
    beginnings = [head("Content-Length: 100") + b"{", b"POST /v1/po"] * 50
    async with opened(seeded_database, head_timeout=LONG) as client, slow(client, *beginnings) as senders:
        answers = [await client.post({"text": str(number)}) for number in range(5)]
        ended = sum(end.done() for _, end in senders)

    assert [answer.status_code for answer in answers] == [202] * 5
    assert ended == 0


@pytest.mark.parametrize(
    "request_head",
    [
        head(f"X-Long: {'a' * 9000}"),
        head(*[f"X-{number}: a" for number in range(200)]),
        head(path="/v1/posts?" + "a" * 9000),
        head("Content-Length: 3", "Content-Length: 4"),
        head("Content-Length: 3", "Transfer-Encoding: chunked"),
        head("Content-Length: -1"),
        head("X-Bad\x01: a"),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
    ids=["long header", "many headers", "long path", "two lengths", "length and chunks", "negative", "control", "TLS"],
)
async def test_what_is_no_http_is_400_in_our_words_and_never_sent_back(
    client: RawIngestClient, request_head: bytes
) -> None:
    status, told = await client.raw(request_head, b"{}")

    assert status == 400
    assert told == {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": "malformed HTTP request, or the request head is too large",
    }


async def test_a_secret_in_a_head_that_cannot_be_read_reaches_no_log(
    client: RawIngestClient, caplog: pytest.LogCaptureFixture
) -> None:
    status, _ = await client.raw(b"POST /v1/posts HTTP/1.1\r\nAuthorization: Bearer hidden-secret\x01\r\n\r\n")

    assert status == 400
    assert "hidden-secret" not in caplog.text
