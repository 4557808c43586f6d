"""An answer written in one piece is the answer that aiohttp would write, and known routes are routes like others."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from autopost_runtime.http.server import WholeResponse
from autopost_runtime.http.web import MIDDLEWARES, Site, serve
from autopost_runtime.telemetry import tracing as telemetry

BODY = b'{"status": "accepted"}'


async def ours(request: web.Request) -> web.StreamResponse:
    await request.read()
    return WholeResponse(202, BODY)


async def theirs(request: web.Request) -> web.StreamResponse:
    await request.read()
    return web.Response(status=202, body=BODY, content_type="application/json")


async def trace(_: web.Request) -> web.StreamResponse:
    return WholeResponse(200, str(telemetry.current_ids()).encode())


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    app = web.Application(middlewares=MIDDLEWARES)
    app.add_routes([web.post("/ours", ours), web.post("/theirs", theirs), web.get("/trace", trace)])
    async with await serve(app, "127.0.0.1", 0) as running:
        yield running


async def written(site: Site, *requests: str) -> bytes:
    """All that comes back until the server closes, or is told to."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write("".join(requests).encode())
    writer.write(b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answers = await reader.read()
    writer.close()
    return re.sub(rb"Date: [^\r]*", b"Date: now", answers)


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("connection", ["", "Connection: close\r\n", "Connection: keep-alive\r\n"])
async def test_it_looks_on_the_wire_as_one_of_aiohttps(site, version, connection):
    def requests(path: str) -> list[str]:
        return [f"POST {path} HTTP/{version}\r\nHost: x\r\n{connection}Content-Length: 2\r\n\r\n{{}}"] * 2

    assert sorted((await written(site, *requests("/ours"))).split(b"\r\n")) == sorted(
        (await written(site, *requests("/theirs"))).split(b"\r\n")
    )


async def test_a_sender_that_waits_for_leave_to_send_its_body_gets_it(site):
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(b"POST /ours HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")

    writer.write(b"{}")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 202")
    writer.close()


async def test_a_path_that_is_known_in_another_method_or_spelling_goes_through_the_router(site):
    requests = ["GET /ours HTTP/1.1\r\nHost: x\r\n\r\n", "POST /ours/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"]

    assert re.findall(rb"HTTP/1.1 (\d+)", await written(site, *requests)) == [b"405", b"404", b"404"]


async def test_without_an_exporter_every_request_has_a_trace_of_its_own_and_leaves_none(site, configure):
    telemetry.setup("test", configure())
    try:
        answers = (await written(site, *["GET /trace HTTP/1.1\r\nHost: x\r\n\r\n"] * 2)).decode()
    finally:
        telemetry.shutdown()

    traces = re.findall(r"\('([0-9a-f]{32})', '00-([0-9a-f]{32})-[0-9a-f]{16}-00'\)", answers)
    assert [one == same for one, same in traces] == [True, True]
    assert len({one for one, _ in traces}) == 2
    assert telemetry.current_ids() == (None, None)
