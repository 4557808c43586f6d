"""Whether a request that failed may have arrived, and that no error tells where it went."""

import asyncio
import gzip
import socket
import traceback
from datetime import timedelta

import pytest
from autopost_runtime.http.client import HttpClient, HttpError, NotSent, Unanswered
from runtime.support.canary import CANARY
from runtime.support.scripted_servers import (
    LIMIT,
    OK,
    answer_then_hang,
    answering,
    call,
    close_after_reading,
    connected,
    everything,
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


@pytest.mark.parametrize("early", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"])
async def test_an_answer_that_asks_for_patience_is_not_the_answer(early):
    async with server(answering(early + OK)) as url:
        answer = await call(url)

    assert (answer.status, answer.body) == (200, b"{}")


async def test_an_answer_may_come_compressed_or_in_pieces():
    zipped = gzip.compress(b'{"ok":true}')
    packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(zipped), zipped)
    chunked = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n{"ok":\r\n5\r\ntrue}\r\n0\r\n\r\n'

    for raw in (packed, chunked):
        async with server(answering(raw)) as url:
            assert (await call(url)).body == b'{"ok":true}'


async def test_a_request_says_all_that_a_server_needs_and_each_of_it_once():
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_request(reader))
        writer.write(OK)

    async with server(talk) as url:
        await call(f"{url}/a?b=%20c", headers={"Authorization": "t", "Content-Type": "application/problem+json"})

    line, *lines = heard[0].partition(b"\r\n\r\n")[0].decode().split("\r\n")
    fields = [tuple(one.split(": ", 1)) for one in lines]
    assert line.startswith("POST /a?b=%20c/bot")
    assert sorted(fields) == [
        ("Accept", "*/*"),
        ("Accept-Encoding", "gzip, deflate"),
        ("Authorization", "t"),
        ("Content-Length", "13"),
        ("Content-Type", "application/problem+json"),
        ("Host", url.removeprefix("http://")),
        ("User-Agent", "autopost"),
    ]


async def test_an_address_in_brackets_is_called_like_any_other(unused_tcp_port):
    with pytest.raises(NotSent) as failed:
        await call(f"http://[::1]:{unused_tcp_port}")

    assert failed.value.code == "connect"


async def test_a_header_cannot_begin_another():
    async with server(answering(OK)) as url, connected(url) as client:
        with pytest.raises(ValueError, match="control character"):
            await client.request("POST", url, json={}, headers={"X-Mine": "1\r\nX-Theirs: 2"}, timeout=LIMIT)


async def test_who_is_named_in_the_url_is_told_to_the_server():
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_request(reader))
        writer.write(OK)

    async with server(talk) as url:
        await call(url.replace("http://", "http://me:secret@"))

    assert b"Authorization: Basic bWU6c2VjcmV0" in heard[0]


async def test_a_connection_is_used_again_only_when_its_answer_was_read():
    """An answer that nobody waited for would be taken for the next."""
    heard: dict[asyncio.StreamWriter, int] = {}
    begun = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            heard[writer] = heard.get(writer, 0) + 1
            if sum(heard.values()) == 3:
                begun.set()
                await everything(reader)
                return
            writer.write(OK)

    async with server(talk) as url, HttpClient() as client:
        for _ in range(2):
            await client.request("POST", url, json={}, timeout=LIMIT)
        given_up = asyncio.create_task(client.request("POST", url, json={}, timeout=LIMIT))
        await begun.wait()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        answer = await client.request("POST", url, json={}, timeout=LIMIT)

    assert answer.body == b"{}"
    assert list(heard.values()) == [3, 1]
