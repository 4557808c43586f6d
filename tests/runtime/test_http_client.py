"""Whether a request that failed may have arrived, and that no error tells where it went."""

import asyncio
import socket
import traceback
from datetime import timedelta

import pytest
from autopost_runtime.http import HttpClient, HttpError, NotSent, Unanswered
from runtime.canary import CANARY
from runtime.talks import (
    OK,
    answer_then_hang,
    answering,
    call,
    close_after_reading,
    connected,
    hang,
    read_request,
    reset_after_reading,
    reset_before_reading,
    server,
)


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
    async with server(answer_then_hang) as url, connected(url) as client:
        with pytest.raises(Unanswered) as failed:
            await client.request("POST", url, json={}, timeout=timedelta(milliseconds=200))

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
        first = asyncio.create_task(client.request("GET", url, timeout=timedelta(minutes=1)))
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


@pytest.mark.parametrize(
    "url", ["http://", "http://host:port", "ftp://host", "not a url", "http://hooks..example.org/x"]
)
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
