"""The receiver: a provider that says yes to each request, however it is cut."""

import asyncio
import socket
import sys
import time
from datetime import timedelta

import pytest
from autopost_bench.programs.receiver import receiving
from autopost_runtime.http.client import HttpClient

REQUEST = b'POST / HTTP/1.1\r\nContent-Length: 27\r\n\r\n{"chat_id":-1001,"text":"x"}'
PIECES = (REQUEST[:10], REQUEST[10:45], REQUEST[45:] + REQUEST + REQUEST[:30], REQUEST[30:])


async def test_requests_that_come_in_pieces_are_counted_once_each():
    async with receiving() as receiver:
        reader, writer = await asyncio.open_connection(*receiver.url.removeprefix("http://").split(":"))

        for piece in PIECES:
            writer.write(piece)
            await writer.drain()
        answers = await reader.readexactly(3 * len(receiver.answer))
        writer.close()

    assert answers == receiver.answer * 3
    assert [arrival.chat for arrival in receiver.arrivals] == ["-1001"] * 3


async def test_a_silent_platform_takes_requests_and_answers_none():
    async with receiving(silent="POST /messages") as receiver:
        reader, writer = await asyncio.open_connection(*receiver.url.removeprefix("http://").split(":"))

        writer.write(REQUEST.replace(b"POST /", b"POST /messages?") + REQUEST)
        answered = await reader.readexactly(len(receiver.answer))
        writer.close()

    assert answered == receiver.answer
    assert len(receiver.arrivals) == 2


async def test_the_dispatchers_client_accepts_its_answer_and_the_arrival_is_told():
    async with receiving() as receiver, HttpClient() as http:
        arrival = receiver.next_arrival()

        answer = await http.request("POST", receiver.url, json={"chat_id": 5}, timeout=timedelta(seconds=5))

        assert answer.status == 200
        assert await arrival == receiver.arrivals[0].at


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell when a call came")
async def test_a_call_has_come_when_the_system_has_it():
    async with receiving() as receiver:
        with socket.create_connection(receiver.url.removeprefix("http://").split(":")) as first:
            first.sendall(REQUEST)
            await asyncio.to_thread(first.recv, len(receiver.answer))
            sent = time.monotonic()
            first.sendall(REQUEST)
            time.sleep(0.2)  # noqa: ASYNC251  the loop that should look is kept from it
            await asyncio.to_thread(first.recv, len(receiver.answer))

    assert receiver.arrivals[-1].at - sent < 0.1
