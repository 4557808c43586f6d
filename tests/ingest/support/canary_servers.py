"""Listeners that must never be reached, one that may, and a resolver with scripted results."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence

from ingest.support.ssrf_urls import FRIEND, Case

PLACES = ("127.0.0.1", "127.0.0.2", "::1")
ATTEMPTS = 20


class Canaries:
    """All at one port. ``heard`` is who was knocked at; ``asked`` how often the friend was."""

    def __init__(self) -> None:
        self.port = 0
        self.heard: list[str] = []
        self.asked = 0
        self.redirect: str | None = None

    async def listen(self, servers: contextlib.AsyncExitStack) -> None:
        for _ in range(ATTEMPTS):
            try:
                await self._listen(servers)
                return
            except OSError:  # somebody has this port at one of the places
                await servers.aclose()
        raise OSError("no port is free at every place")

    async def _listen(self, servers: contextlib.AsyncExitStack) -> None:
        self.port = 0
        for place in (*PLACES, FRIEND):
            server = await asyncio.start_server(self._friend if place == FRIEND else self._canary, place, self.port)
            self.port = server.sockets[0].getsockname()[1]
            servers.callback(server.close)

    async def _canary(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(writer.get_extra_info("sockname")[0])
        writer.close()

    async def _friend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            if b" /redirect" in head.split(b"\r\n")[0] and self.redirect is not None:
                where = self.redirect.replace("{port}", str(self.port))
                writer.write(f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode())
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()


@contextlib.asynccontextmanager
async def canaries() -> AsyncIterator[Canaries]:
    made = Canaries()
    async with contextlib.AsyncExitStack() as servers:
        await made.listen(servers)
        yield made


class Names:
    """Knows the names of a case, and every spelling of a number, as a system does; nobody else is asked."""

    def __init__(self, case: Case) -> None:
        self._answers = {name: list(answers) for name, answers in case.names.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        name = host.lower().rstrip(".")
        if name == "friend.example":
            return [FRIEND]
        if answers := self._answers.get(name):
            return answers.pop(0) if len(answers) > 1 else answers[0]
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return [str(place[0]) for *_, place in found]
