"""What our HTTP services do with requests that are wrong, slow, lying or broken."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta

import asyncpg
import pytest
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from autopost_runtime.http.web import BODY, MIDDLEWARES, HttpProblem, Site, read_limited, serve
from autopost_runtime.telemetry import tracing as telemetry
from harness.eventually import eventually
from runtime.support.canary import CANARY

TRACE = "a" * 32
LIMIT = 1000

Ask = Callable[..., Awaitable[tuple[int, dict[str, str], dict[str, object]]]]


async def read(request: web.Request) -> web.Response:
    body = await read_limited(request, LIMIT, timedelta(milliseconds=300))
    return web.json_response({"size": len(body)})


async def refuse(_: web.Request) -> web.Response:
    raise HttpProblem(422, "Unprocessable Content", "text is too long", field="text", headers={"X-Hint": "cut"})


async def crash(_: web.Request) -> web.Response:
    raise ValueError(f"SELECT secret FROM /etc/passwd {CANARY}")


async def lose_the_database(_: web.Request) -> web.Response:
    raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    app = web.Application(middlewares=MIDDLEWARES)
    app.add_routes(
        [
            web.post("/read", read),
            web.get("/refuse/{id}", refuse),
            web.get("/crash", crash),
            web.get("/away", lose_the_database),
        ]
    )
    async with await serve(app, "127.0.0.1", 0) as running:
        yield running


@pytest.fixture
def ask(site: Site) -> Ask:
    """Raw bytes in, so that a request may lie."""

    async def send(*pieces: bytes) -> tuple[int, dict[str, str], dict[str, object]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        writer.close()
        await writer.wait_closed()
        return int(first.split()[1]), headers, json.loads(body) if "json" in headers["content-type"] else {}

    return send


def head(first: str, *headers: str) -> bytes:
    return "\r\n".join([f"{first} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def get(path: str, *headers: str) -> bytes:
    return head(f"GET {path}", *headers)


def post(*headers: str) -> bytes:
    return head("POST /read", *headers)


async def test_a_refusal_is_problem_json_that_names_the_field(ask):
    status, headers, body = await ask(get("/refuse/1"))

    assert (status, headers["content-type"], headers["x-hint"]) == (422, "application/problem+json", "cut")
    assert body == {
        "type": "about:blank",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "text is too long",
        "field": "text",
    }


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/read", 405)])
async def test_what_the_router_refuses_is_problem_json_too(ask, path, status):
    got, headers, body = await ask(get(path))

    assert (got, body["status"], headers["content-type"]) == (status, status, "application/problem+json")


async def test_a_crash_tells_its_trace_id_and_nothing_else(ask, traced):
    status, _, body = await ask(get("/crash", f"traceparent: 00-{TRACE}-{'b' * 16}-01"))

    assert status == 500
    assert body["trace_id"] == TRACE
    assert not any(word in str(body) for word in ("SELECT", "passwd", "ValueError", "Traceback", CANARY))


async def test_a_lost_database_is_503_with_a_time_to_come_back(ask):
    status, headers, body = await ask(get("/away"))

    assert (status, headers["retry-after"]) == (503, "2")
    assert "connection was closed" not in str(body)


async def test_latency_is_measured_by_route_and_status_not_by_path(ask, measured):
    await ask(get("/refuse/1"))
    await ask(get("/refuse/2"))
    await ask(get("/nowhere/3"))
    await ask(head("PROPFIND /pot"))

    text = measured()

    assert 'autopost_http_requests_seconds_count{method="GET",route="/refuse/{id}",status="422"} 2.0' in text
    assert 'autopost_http_requests_seconds_count{method="GET",route="unmatched",status="404"} 1.0' in text
    assert 'method="OTHER"' in text


async def test_a_request_goes_on_with_the_callers_trace(configure, tmp_path):
    telemetry.setup("test", configure(trace_dir=tmp_path))
    seen: list[str | None] = []

    async def look(_: web.Request) -> web.Response:
        seen.append(telemetry.trace_id_of(telemetry.current_traceparent()))
        return web.Response()

    app = web.Application(middlewares=MIDDLEWARES)
    app.router.add_get("/look", look)
    async with await serve(app, "127.0.0.1", 0) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(get("/look", f"traceparent: 00-{TRACE}-{'b' * 16}-01"))
        await reader.readline()
        writer.close()
        await writer.wait_closed()
    telemetry.shutdown()

    assert seen == [TRACE]


@pytest.mark.parametrize("size", [0, 1, LIMIT])
async def test_a_body_within_the_limit_is_read_whole(ask, size):
    status, _, body = await ask(post(f"Content-Length: {size}"), b"x" * size)

    assert (status, body) == (200, {"size": size})


async def test_a_chunked_body_within_the_limit_is_read_whole(ask):
    status, _, body = await ask(post("Transfer-Encoding: chunked"), b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n")

    assert (status, body) == (200, {"size": 5})


@pytest.mark.parametrize(
    "pieces",
    [
        (post(f"Content-Length: {LIMIT + 1}"),),
        (post("Content-Length: 99999999999"),),
        (post("Transfer-Encoding: chunked"), b"3e9\r\n" + b"x" * 1001 + b"\r\n"),
        (post("Transfer-Encoding: chunked"), *[b"64\r\n" + b"x" * 100 + b"\r\n"] * 11),
    ],
    ids=["said", "said a lot", "one chunk", "many chunks"],
)
async def test_a_body_over_the_limit_is_413_before_it_is_read(ask, pieces):
    status, headers, _ = await ask(*pieces)

    assert (status, headers["connection"]) == (413, "close")


async def test_a_body_that_never_comes_is_408(ask):
    status, _, _ = await ask(post("Content-Length: 10"), b"abc")

    assert status == 408


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity"])
async def test_an_encoded_body_is_415(ask, encoding):
    status, _, body = await ask(post(f"Content-Encoding: {encoding}", "Content-Length: 3"), b"abc")

    assert (status, body["field"]) == (415, "Content-Encoding")


async def test_a_broken_chunk_is_400(ask):
    status, _, _ = await ask(post("Transfer-Encoding: chunked"), b"zz\r\nabc\r\n")

    assert status == 400


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What is held in a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (get("/", f"X: {'y' * 9000}"), 400),
        (get("/", "Upgrade: x", "Connection: upgrade") + b"zz\r\n\r\n", 404),
        (head("POST /nowhere", "Content-Length: 3") + b"abc", 404),
        (head("POST /crash", "Content-Length: 3") + b"abc", 405),
    ],
    ids=["no HTTP", "a long header", "no HTTP behind an upgrade", "no route", "no method"],
)
async def test_a_refused_request_is_held_by_nothing_once_its_connection_is_gone(ask, request_head, status):
    assert (await ask(request_head))[0] == status

    await eventually(lambda: not [held for held in gc.get_objects() if _holds_what_came(held)])


def _holds_what_came(held: object) -> bool:
    kind = type(held)
    return issubclass(kind, web.BaseRequest) or (issubclass(kind, HttpProcessingError) and bool(held.__traceback__))


async def test_a_connection_that_rests_after_its_request_holds_no_body():
    seen: list[web.Request] = []

    async def keep(request: web.Request) -> web.Response:
        seen.append(request)
        return await read(request)

    app = web.Application(middlewares=MIDDLEWARES)
    app.router.add_post("/read", keep)
    async with await serve(app, "127.0.0.1", 0) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(post("Content-Length: 3") + b"abc")
        await reader.readuntil(b"}")

        assert BODY not in seen[0]
        writer.close()
        await writer.wait_closed()


async def test_stopping_lets_a_running_request_finish(site):
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        entered.set()
        await leave.wait()
        return web.Response(text="done")

    app = web.Application()
    app.router.add_get("/slow", slow)
    running = await serve(app, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(get("/slow"))
    await entered.wait()

    stopping = asyncio.create_task(running.stop())
    asyncio.get_running_loop().call_soon(leave.set)
    answer = await reader.read()
    await stopping
    writer.close()
    await writer.wait_closed()

    assert answer.endswith(b"done")
