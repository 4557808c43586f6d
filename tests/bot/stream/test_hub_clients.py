"""Clients that are slow, gone, or many."""

import asyncio
import os
import socket
import struct
import time
from datetime import timedelta
from urllib.parse import urlsplit

from autopost_bot.stream.serve import StreamTimes, _prepare_socket
from autopost_bot.stream.subscription import MOST_FRAMES, Subscription
from bot.conftest import StartReplica
from bot.support.listener import listening
from bot.support.replicas import BEARER, SECRET, Replica
from harness.databases import Database
from harness.eventually import eventually

QUICK = StreamTimes(keep_alive=timedelta(milliseconds=100))
LINGER_0 = struct.pack("ii", 1, 0)


async def opened(bot: Replica, count: int) -> list[socket.socket]:
    parts = urlsplit(bot.events())
    loop = asyncio.get_running_loop()

    async def connect() -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        await loop.sock_connect(connection, (parts.hostname, parts.port))
        request = f"GET {parts.path} HTTP/1.1\r\nHost: bot\r\nAuthorization: Bearer {SECRET}\r\n\r\n"
        await loop.sock_sendall(connection, request.encode())
        return connection

    connections = []
    for _ in range(0, count, 50):
        connections += await asyncio.gather(*(connect() for _ in range(min(50, count))))
    await eventually(lambda: bot.hub.clients == count)
    return connections


async def test_a_thousand_clients_that_vanish_leave_nothing(start_replica: StartReplica) -> None:
    bot = await start_replica(times=QUICK)
    connections = await opened(bot, 1000)

    for n, connection in enumerate(connections):
        if n % 2:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)  # a reset instead of an end
        connection.close()

    await eventually(lambda: bot.hub.clients == 0)
    assert bot.hub._chats == {}


async def never_reading(bot: Replica) -> tuple[socket.socket, Subscription]:
    parts = urlsplit(bot.events())
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect((parts.hostname, parts.port))
    slow.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: bot\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode())
    await eventually(lambda: bot.hub.clients == 1)
    [chat] = bot.hub._chats.values()
    [stuck] = chat.clients
    return slow, stuck


async def test_a_client_that_never_reads_is_dropped_and_harms_nobody(
    start_replica: StartReplica, seeded_database: Database
) -> None:
    bot = await start_replica()
    slow, stuck = await never_reading(bot)
    [chat] = bot.hub._chats.values()

    async with listening(bot.events(), headers=BEARER) as quick:
        sent = 0
        while stuck in chat.clients:
            await bot.start(f"a{sent}", payload={"large": os.urandom(6000).hex()})
            sent += 1
            await quick.heard(sent)

        assert len(stuck._frames) <= MOST_FRAMES
        assert quick.ids == list(range(1, sent + 1))
    slow.close()

    async with listening(bot.events(), headers={**BEARER, "Last-Event-ID": "0"}) as again:
        await again.heard(1)
    assert again.ids[0] == 1


async def test_a_client_that_never_reads_does_not_hold_up_a_stop(start_replica: StartReplica) -> None:
    bot = await start_replica()
    slow, stuck = await never_reading(bot)
    sent = 0
    while len(stuck._frames) < 2:  # its handler waits for the socket
        await bot.start(f"a{sent}", payload={"large": os.urandom(7000).hex()})
        sent += 1

    started = time.perf_counter()
    bot.hub.close()
    await bot.site.stop()
    slow.close()

    assert time.perf_counter() - started < 2
    assert bot.hub.clients == 0


async def test_the_kernel_ends_the_connection_of_a_client_whose_machine_is_gone() -> None:
    class Transport:
        def get_extra_info(self, _: str) -> socket.socket:
            return connection

    class Request:
        transport = Transport()

    with socket.socket() as connection:
        _prepare_socket(Request())  # type: ignore[arg-type]

        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000


def test_the_sixty_fifth_frame_drops_the_client_once() -> None:
    aborted: list[int] = []
    client = Subscription(lambda: aborted.append(1))

    for seq in range(1, 200):
        client.put(seq, b"frame")

    assert aborted == [1]
    assert len(client._frames) == MOST_FRAMES


async def test_what_a_client_knows_already_is_not_repeated() -> None:
    client = Subscription(lambda: None)
    for seq in (3, 4, 5, 5, 4):
        client.put(seq, b"%d;" % seq)
    client.begin_at(4)
    client.put(4, b"4;")
    client.put(6, b"6;")

    assert await client.next(1) == b"5;6;"
