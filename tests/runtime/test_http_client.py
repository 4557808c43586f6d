"""Whether a request that failed may have arrived, and that no error tells where it went."""

import asyncio
import contextlib
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from autopost_runtime.http import HttpAnswer, HttpClient, HttpError, NotSent, Unanswered
from autopost_runtime.request_body import StreamedBody
from harness.eventually import eventually
from runtime.canary import CANARY

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LIMIT = timedelta(seconds=5)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Kept: yes\r\n\r\n{}"


@contextlib.asynccontextmanager
async def server(talk: Talk) -> AsyncIterator[str]:
    """Raw bytes, because what matters is what no well-behaved server does."""

    talks: set[asyncio.Task[None]] = set()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with await asyncio.start_server(meet, "127.0.0.1", 0) as running:
        yield f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}"
        await asyncio.gather(*talks)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    return head + await reader.readexactly(int(length.split(b":")[1]))


async def call(url: str, **options: object) -> HttpAnswer:
    async with HttpClient() as client:
        return await client.request(
            "POST", f"{url}/bot{CANARY}/sendMessage", **{"json": {"text": "hi"}, "timeout": LIMIT, **options}
        )


def answering(raw: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(raw)
        await writer.drain()

    return talk


async def reset_before_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def reset_after_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.transport.abort()


async def close_after_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    await reader.read()  # until the client gives up


async def hang_up_when_done(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await everything(reader)


async def everything(reader: asyncio.StreamReader) -> bytes:
    """Until the client hangs up, however rudely."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(1024 * 1024):
            got += chunk
    return got


async def test_an_answer_comes_back_whole():
    async with server(answering(OK)) as url:
        answer = await call(url)

    assert (answer.status, answer.body, answer.headers["x-kept"]) == (200, b"{}", "yes")


@pytest.mark.parametrize("status", [302, 404, 429, 500])
async def test_any_status_is_an_answer_and_no_redirect_is_followed(status):
    async with server(answering(b"HTTP/1.1 %d X\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n" % status)) as url:
        assert (await call(url)).status == status


async def test_json_and_forms_are_sent_as_such():
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_request(reader))
        writer.write(OK)

    async with server(talk) as url:
        await call(url)
        await call(url, json=None, form={"text": "привет"}, headers={"X-Mine": "1"})

    assert b"Content-Type: application/json" in heard[0]
    assert heard[0].endswith(b'{"text":"hi"}')
    assert b"Content-Type: application/x-www-form-urlencoded" in heard[1]
    assert b"X-Mine: 1" in heard[1]


@pytest.mark.parametrize(
    ("talk", "code"),
    [
        (reset_before_reading, "reset"),
        (reset_after_reading, "reset"),
        (close_after_reading, "reset"),
        (answering(b"SSH-2.0-OpenSSH_9.2\r\n"), "bad_framing"),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), "bad_framing"),
        (answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "bad_framing"),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 2_000_000), "answer_too_big"),
        (answering(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 2_000_000), "answer_too_big"),
    ],
    ids=["reset before", "reset after", "closed", "garbage", "short", "bad chunk", "oversized", "oversized unsaid"],
)
async def test_what_fails_after_connecting_may_have_arrived(talk, code):
    async with server(talk) as url:
        with pytest.raises(Unanswered) as failed:
            await call(url)

    assert failed.value.code == code


async def test_a_hanging_server_may_have_understood():
    async with server(hang) as url:
        with pytest.raises(Unanswered) as failed:
            await call(url, timeout=timedelta(milliseconds=200))

    assert failed.value.code == "read_timeout"


async def test_a_refused_connection_sent_nothing(unused_tcp_port):
    with pytest.raises(NotSent) as failed:
        await call(f"http://127.0.0.1:{unused_tcp_port}")

    assert failed.value.code == "connect"


async def test_a_name_that_does_not_resolve_sent_nothing():
    with pytest.raises(NotSent) as failed:
        await call("http://no-such-host.invalid")

    assert failed.value.code == "dns"


async def test_a_connection_that_is_never_made_sent_nothing():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        fillers = [socket.socket() for _ in range(8)]  # the queue of connections is full, so the next one waits
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())

        with pytest.raises(NotSent) as failed:
            await call(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=timedelta(milliseconds=300))

        for filler in fillers:
            filler.close()
    assert failed.value.code == "connect_timeout"


async def test_waiting_for_a_free_connection_sent_nothing():
    async with server(hang) as url, HttpClient(limit=1) as client:
        first = asyncio.create_task(client.request("GET", url, timeout=timedelta(seconds=2)))
        await asyncio.sleep(0)

        with pytest.raises(NotSent) as failed:
            await client.request("GET", url, timeout=timedelta(milliseconds=200))

        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert failed.value.code == "connect_timeout"


async def test_a_server_that_speaks_no_tls_was_sent_nothing():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)

    async with server(talk) as url:
        with pytest.raises(NotSent) as failed:
            await call(url.replace("http:", "https:"))

    assert failed.value.code == "tls"


@pytest.mark.parametrize("url", ["http://", "http://host:port", "ftp://host", "not a url"])
async def test_a_url_that_makes_no_sense_sent_nothing(url):
    with pytest.raises(NotSent):
        await call(url)


@pytest.mark.parametrize("talk", [reset_after_reading, hang, answering(b"garbage\r\n")])
async def test_an_error_tells_nothing_of_the_url(talk):
    async with server(talk) as url:
        with pytest.raises(HttpError) as failed:
            await call(url, timeout=timedelta(milliseconds=300))

    told = "".join(traceback.format_exception(failed.value)) + repr(failed.value) + repr(vars(failed.value))
    assert CANARY not in told
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


async def test_proxies_of_the_environment_are_ignored(monkeypatch, unused_tcp_port):
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_tcp_port}")

    async with server(answering(OK)) as url:
        assert (await call(url)).status == 200


class SourceBroke(Exception):  # noqa: N818  named for what happened
    pass


def streamed(chunks: AsyncIterator[bytes] | list[bytes], length: int) -> StreamedBody:
    async def from_list(given: list[bytes]) -> AsyncIterator[bytes]:
        for chunk in given:
            yield chunk

    return StreamedBody(
        "multipart/form-data; boundary=b", length, lambda: from_list(chunks) if isinstance(chunks, list) else chunks
    )


async def test_a_streamed_body_goes_out_with_its_length_and_not_in_http_chunks():
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_request(reader))
        writer.write(OK)

    async with server(talk) as url:
        answer = await call(url, json=None, body=streamed([b"one,", b"", b"two"], 7), headers={"X-Mine": "1"})

    head, _, sent = heard[0].partition(b"\r\n\r\n")
    assert (answer.status, sent) == (200, b"one,two")
    assert b"Content-Length: 7" in head
    assert b"Content-Type: multipart/form-data; boundary=b" in head
    assert b"X-Mine: 1" in head
    assert b"chunked" not in head.lower()


async def test_a_large_body_is_taken_from_its_source_only_as_fast_as_it_leaves():
    chunk, count = bytes(64 * 1024), 800
    given = received = most_waiting = 0

    async def source() -> AsyncIterator[bytes]:
        nonlocal given, most_waiting
        for _ in range(count):
            given += len(chunk)
            most_waiting = max(most_waiting, given - received)
            yield chunk

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await reader.readuntil(b"\r\n\r\n")
        while received < len(chunk) * count:
            received += len(await reader.read(len(chunk)))
        writer.write(OK)

    async with server(talk) as url:
        await call(url, json=None, body=streamed(source(), len(chunk) * count), timeout=timedelta(seconds=60))

    assert received == len(chunk) * count
    assert most_waiting < 16 * 1024 * 1024  # what the sockets of both sides hold at most


async def test_what_a_source_raises_comes_out_as_it_is_and_the_body_stays_incomplete():
    got = asyncio.get_running_loop().create_future()
    broke = SourceBroke("gone")
    broke.__cause__ = KeyError("why")

    async def source() -> AsyncIterator[bytes]:
        yield b"half"
        raise broke

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        got.set_result(await everything(reader))

    async with server(talk) as url:
        with pytest.raises(SourceBroke) as raised:
            await call(url, json=None, body=streamed(source(), 8))
        assert await got == b"half"

    told = "".join(traceback.format_exception(raised.value))
    assert raised.value is broke
    assert isinstance(raised.value.__cause__, KeyError)
    assert CANARY not in told


async def test_a_source_that_cannot_even_be_opened_says_so_itself():
    def fail() -> AsyncIterator[bytes]:
        raise SourceBroke

    async with server(hang_up_when_done) as url:
        with pytest.raises(SourceBroke):
            await call(url, json=None, body=StreamedBody("text/plain", 8, fail))


@pytest.mark.parametrize("error", [OSError("disk"), TimeoutError("slow"), ConnectionResetError("s3")])
async def test_an_error_of_the_source_is_not_mistaken_for_one_of_the_connection(error):
    async def source() -> AsyncIterator[bytes]:
        yield b"half"
        raise error

    async with server(hang_up_when_done) as url:
        with pytest.raises(type(error)) as raised:
            await call(url, json=None, body=streamed(source(), 8))

    assert raised.value is error


async def test_what_a_source_raises_after_the_last_byte_may_have_been_obeyed():
    async def source() -> AsyncIterator[bytes]:
        yield b"all of it"
        raise SourceBroke

    async with server(hang_up_when_done) as url:
        with pytest.raises(Unanswered) as failed:
            await call(url, json=None, body=streamed(source(), 9))

    assert failed.value.code == "source_failed"


@pytest.mark.parametrize("length", [3, 9], ids=["longer", "shorter"])
async def test_a_body_of_another_length_than_was_told_is_never_complete(length):
    got = asyncio.get_running_loop().create_future()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.set_result((await everything(reader)).partition(b"\r\n\r\n")[2])

    async with server(talk) as url:
        with pytest.raises(ValueError, match="body"):
            await call(url, json=None, body=streamed([b"12", b"3456"], length))

    assert len(await got) < length


async def endless(released: asyncio.Event) -> AsyncIterator[bytes]:
    try:
        while True:
            yield bytes(64 * 1024)
    finally:
        released.set()


async def test_a_refusal_that_comes_before_the_body_was_read_is_read_and_the_source_is_let_go():
    released = asyncio.Event()
    source = endless(released)  # held, so that nobody but the client closes it
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        await writer.drain()
        await everything(reader)

    async with server(talk) as url, HttpClient() as client:
        answer = await client.request("POST", url, body=streamed(source, 1 << 40), timeout=LIMIT)
        assert released.is_set()

    assert (answer.status, answer.body) == (413, b"too large")


async def test_a_server_that_refuses_and_reads_nothing_more_is_heard_and_left():
    heard = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

        def is_alone() -> bool:
            writer.write(b".")
            return writer.transport.is_closing()

        await heard.wait()
        await eventually(is_alone)

    async with server(talk) as url, HttpClient() as client:
        body = streamed(endless(asyncio.Event()), 1 << 40)
        answer = await client.request("POST", url, body=body, timeout=timedelta(seconds=30))
        heard.set()

    assert answer.status == 413


async def test_a_reset_in_the_middle_of_the_body_is_no_answer():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(256 * 1024)
        writer.transport.abort()

    async with server(talk) as url:
        with pytest.raises(Unanswered) as failed:
            await call(url, json=None, body=streamed(endless(asyncio.Event()), 1 << 40))

    assert failed.value.code == "reset"
    assert CANARY not in "".join(traceback.format_exception(failed.value))


async def test_a_body_that_takes_too_long_is_given_up_and_its_source_let_go():
    released = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        try:
            yield b"half"
            await asyncio.Event().wait()
        finally:
            released.set()

    async with server(hang_up_when_done) as url:
        with pytest.raises(Unanswered) as failed:
            await call(url, json=None, body=streamed(source(), 8), timeout=timedelta(milliseconds=300))
        await asyncio.wait_for(released.wait(), 5)

    assert failed.value.code == "read_timeout"


async def test_a_connection_whose_body_broke_off_is_not_used_again():
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await answering(OK)(reader, writer)

    async def source() -> AsyncIterator[bytes]:
        yield b"half"
        raise SourceBroke

    async with server(talk) as url, HttpClient(limit=1) as client:
        with pytest.raises(SourceBroke):
            await client.request("POST", url, body=streamed(source(), 8), timeout=LIMIT)
        answer = await client.request("POST", url, json={}, timeout=LIMIT)

    assert answer.status == 200
    assert connections == 2
