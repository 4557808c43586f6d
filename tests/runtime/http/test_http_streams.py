"""Bodies that are streamed: whole or not at all, at the pace of whoever reads, and their source let go."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from autopost_runtime.http.client import HttpClient, Unanswered
from autopost_runtime.http.request_body import StreamedBody
from harness.eventually import eventually
from runtime.support.canary import CANARY
from runtime.support.scripted_servers import (
    LIMIT,
    OK,
    answer_then_hang,
    answering,
    call,
    connected,
    everything,
    hang_up_when_done,
    read_request,
    server,
)


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

    async with server(answer_then_hang) as url, connected(url) as client:
        with pytest.raises(Unanswered) as failed:
            await client.request("POST", url, body=streamed(source(), 8), timeout=timedelta(milliseconds=300))
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
