"""The health port under those who mean it no good: it answers everybody else, and gives nothing away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web
from autopost_runtime.http.server import BIGGEST_HEADER, MOST_HEADERS, WholeResponse
from autopost_runtime.http.web import HEAD_TIMEOUT, MIDDLEWARES, serve
from autopost_runtime.lifecycle.health import CONNECTIONS_PER_ADDRESS, Health

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture
async def health() -> AsyncIterator[Health]:
    async with listening(timedelta(milliseconds=200)) as made:
        yield made


@contextlib.asynccontextmanager
async def listening(head_timeout: timedelta) -> AsyncIterator[Health]:
    made = Health(head_timeout=head_timeout)
    await made.start("0.0.0.0", 0)  # noqa: S104  loopback has several addresses
    made.begun()
    yield made
    await made.stop()


async def talk(port: int, sent: bytes, host: str = "127.0.0.1") -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    return answer


def status(answer: bytes) -> int:
    return int(answer.split()[1])


@pytest.mark.parametrize("begun", [b"", b"GET /hea", GET[:-2]])
async def test_a_head_that_never_ends_is_given_up(health: Health, begun: bytes) -> None:
    async with asyncio.timeout(HEAD_TIMEOUT.total_seconds() / 2):  # it is the limit of this server that ends it
        assert status(await talk(health.port, begun)) == 408


@pytest.mark.parametrize(
    "more",
    [b"X: " + b"x" * (BIGGEST_HEADER + 1) + b"\r\n", b"".join(b"X%d: y\r\n" % n for n in range(MOST_HEADERS + 1))],
    ids=["one too large", "too many"],
)
async def test_a_head_that_is_too_large_is_refused(health: Health, more: bytes) -> None:
    assert status(await talk(health.port, GET[:-2] + more + b"\r\n")) == 400


async def test_one_address_cannot_take_every_connection(health: Health) -> None:
    """Another address is still answered: the kubelet's, while somebody else holds all that one may have."""
    held = [await asyncio.open_connection("127.0.0.1", health.port) for _ in range(CONNECTIONS_PER_ADDRESS)]

    refused = await talk(health.port, GET)
    _, writer = await asyncio.open_connection("127.0.0.1", health.port, local_addr=("127.0.0.2", 0))
    reader, other = await asyncio.open_connection("127.0.0.1", health.port, local_addr=("127.0.0.3", 0))
    other.write(GET)

    assert (status(refused), status(await reader.read())) == (503, 200)
    for one in (writer, other, *(writer for _, writer in held)):
        one.close()


FLOOD = 1500
WORKERS = 100
ANSWERS = 20


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /hea", GET, GET.replace(b"healthz", b"metrics"), b"\0" * 5000, b"nonsense\r\n\r\n"],
    ids=["nothing", "half a head", "health", "metrics", "zeros", "nonsense"],
)
async def test_a_flood_from_one_address_keeps_no_other_from_its_answer(sent: bytes) -> None:
    """Half of its connections wait for an answer, half are closed at once."""
    async with listening(timedelta(seconds=2)) as health:
        others = await answers_during_a_flood(health, sent)

    assert set(others) == {200}


async def answers_during_a_flood(health: Health, sent: bytes) -> list[int]:
    left = iter(range(FLOOD))
    answers: list[int] = []
    others: list[int] = []

    async def flood() -> None:
        for number in left:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.2", health.port, local_addr=("127.0.0.2", 0))
                with contextlib.closing(writer):
                    writer.write(sent)
                    if number % 2:
                        answers.append(len(await reader.read()))

    async with asyncio.TaskGroup() as tasks:
        flooding = [tasks.create_task(flood()) for _ in range(WORKERS)]
        while not all(one.done() for one in flooding) or len(others) < ANSWERS:
            reader, writer = await asyncio.open_connection("127.0.0.1", health.port)
            writer.write(GET)
            others.append(status(await reader.read()))
            writer.close()

    assert len(answers) > FLOOD // 4
    return others


@pytest.mark.parametrize("sent", [GET, GET.replace(b"/healthz", b"/nothing"), b"nonsense\r\n\r\n"])
async def test_the_health_port_names_no_version(health: Health, sent: bytes) -> None:
    names_no_version(await talk(health.port, sent))


@pytest.mark.parametrize("path", ["/plain", "/fast", "/stream", "/crash", "/nothing", "/ nonsense"])
async def test_no_answer_of_our_servers_names_a_version(path: str) -> None:
    async def plain(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def fast(_: web.Request) -> WholeResponse:
        return WholeResponse(200, b"{}")

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"hello")
        return response

    async def crash(_: web.Request) -> web.Response:
        raise ValueError("no sense")

    app = web.Application(middlewares=MIDDLEWARES)
    app.add_routes([web.get(f"/{made.__name__}", made) for made in (plain, fast, stream, crash)])
    async with await serve(app, "127.0.0.1", 0) as site:
        names_no_version(await talk(site.port, GET.replace(b"/healthz", path.encode())))


def names_no_version(answer: bytes) -> None:
    head = answer.partition(b"\r\n\r\n")[0].decode().splitlines()
    servers = [line for line in head if line.lower().startswith("server:")]
    assert servers in ([], ["Server: autopost"])
    assert not [word for line in head for word in ("aiohttp", "Python") if word in line]
