"""Close a connection, and detect that the client has closed it."""

import asyncio
import socket
import struct

from aiohttp import web

LOOK_FOR_HANGUP = 0.5


def drop(request: web.Request) -> None:
    """Close with RST, so that the client gets a connection reset."""
    transport = request.transport
    if transport is None:
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def hung_up(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def until_hung_up(request: web.Request) -> None:
    while not hung_up(request):  # noqa: ASYNC110  aiohttp offers no event for it
        await asyncio.sleep(LOOK_FOR_HANGUP)
