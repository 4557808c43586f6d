"""Each platform's adapter against its simulator, over real HTTP: the shipped ones, and one that only the tests have."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from aiohttp import web
from autopost_adapters.base import AcceptedPart, Adapter, Material, Target
from autopost_adapters.registry import adapters
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import MediaPart, Part, PlannedMedia
from autopost_runtime.config.load import Secret
from autopost_runtime.http.client import HttpClient
from autopost_simulator import Simulator, listening
from harness.http_client import http_client

from adapters.board.send import BoardAdapter
from adapters.board.server import Board
from adapters.media_sources import Bytes

PATIENT, IMPATIENT = timedelta(seconds=20), timedelta(milliseconds=700)
NOWHERE = "http://127.0.0.1:1"
TOKENS = {
    "telegram": "1000001:adapter-tests-token-0123456789abcdef",
    "max": "adapter-tests-token",
    "board": "adapter-tests-key",
}
CHATS = {"telegram": "-1001000000001", "max": "-70000000000001", "board": "kitchen"}

Shown = dict[str, Any]
"""A message as its readers see it: ``id``, ``text``, and ``media`` as checksums in order."""


class Platform(ABC):
    """One adapter, one chat, and the strings to pull behind the scenes."""

    def __init__(self, name: str, make: Callable[[timedelta], Adapter]) -> None:
        self.name = name
        self.adapter = make(PATIENT)
        self.impatient = make(IMPATIENT)
        self.target = Target(chat=CHATS[name], token=Secret(TOKENS[name]))

    async def send(
        self, part: Part, media: Sequence[Material] = (), *, token: str | None = None
    ) -> AcceptedPart | Failed:
        target = self.target if token is None else Target(chat=self.target.chat, token=Secret(token))
        return await self.adapter.send(part, target, media)

    async def upload_media(self, *items: PlannedMedia, sources: Sequence[Bytes] = ()) -> list[Material]:
        """What items are sent from when their bytes have never been sent: the bytes, or the id of an upload."""
        given = sources or [Bytes() for _ in items]
        if not self.adapter.uploads_apart:
            return list(given)
        held = [await self.adapter.upload(item, source, self.target) for item, source in zip(items, given, strict=True)]
        return [one.provider_id for one in held if not isinstance(one, Failed)]

    async def hold(self, item: PlannedMedia) -> str:
        """The id under which the platform holds an item already."""
        (material,) = await self.upload_media(item)
        if isinstance(material, str):
            return material
        sent = await self.send(MediaPart(media=(item,)), [material])
        assert isinstance(sent, AcceptedPart)
        (held,) = sent.held
        assert held is not None
        return held.provider_id

    @abstractmethod
    async def misbehave(self, **effect: Any) -> None: ...

    @abstractmethod
    async def shown(self) -> list[Shown]: ...


class Simulated(Platform):
    def __init__(self, name: str, make: Callable[[timedelta], Adapter], url: str, http: httpx.AsyncClient) -> None:
        super().__init__(name, make)
        self.url = url
        self.http = http

    async def misbehave(self, *, method: str | None = None, **effect: Any) -> None:
        fault = {"name": "fault", "effect": effect} | ({"method": method} if method else {})
        (await self.http.post(f"{self.url}/_sim/faults", json=fault)).raise_for_status()

    async def posts(self) -> list[dict[str, Any]]:
        answer = await self.http.get(f"{self.url}/_sim/chats/{self.name}/{CHATS[self.name]}/messages")
        posts: list[dict[str, Any]] = answer.json()["messages"]
        return posts

    async def log(self) -> list[dict[str, Any]]:
        lines = (await self.http.get(f"{self.url}/_sim/log")).text.splitlines()
        return [httpx.Response(200, content=line).json() for line in lines]

    async def shown(self) -> list[Shown]:
        return [
            {"id": str(post["id"]), "text": post["text"] or "", "media": await self.media(post["extra"])}
            for post in await self.posts()
        ]

    async def media(self, extra: dict[str, Any]) -> list[str]:
        if self.name == "telegram":
            return [one["sha256"] for one in extra.get("media", [])]
        tokens = [one["payload"]["token"] for one in extra.get("attachments", [])]
        files = [await self.http.get(f"{self.url}/_sim/max/files/{token}") for token in tokens]
        return [file.headers["ETag"].strip('"') for file in files]


class OnBoard(Platform):
    def __init__(self, board: Board, make: Callable[[timedelta], Adapter]) -> None:
        super().__init__("board", make)
        self._board = board

    async def misbehave(self, **effect: Any) -> None:
        self._board.trouble = effect

    async def shown(self) -> list[Shown]:
        return self._board.notices


@asynccontextmanager
async def simulated(name: str) -> AsyncIterator[Simulated]:
    """Without limits of rate: they are the queue's affair."""
    async with (
        listening(Simulator(open_to_all=True)) as url,
        HttpClient() as client,
        http_client() as http,
    ):
        chat = {"platform": name, "id": int(CHATS[name]), "limits": []}
        (await http.post(f"{url}/_sim/chats", json=chat)).raise_for_status()
        token = {"platform": name, "token": TOKENS[name], "limits": []}
        (await http.post(f"{url}/_sim/tokens", json=token)).raise_for_status()
        yield Simulated(name, lambda timeout: adapter_at(client, name, url, timeout), url, http)


@asynccontextmanager
async def on_board() -> AsyncIterator[OnBoard]:
    board = Board()
    runner = web.AppRunner(board.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with HttpClient() as client:
            yield OnBoard(board, lambda timeout: adapter_at(client, "board", url, timeout))
    finally:
        await runner.cleanup()


def adapter_at(client: HttpClient, name: str, url: str, timeout: timedelta) -> Adapter:
    """The board stands among the others without their knowing."""
    made = adapters(
        client,
        telegram_url=url,
        max_url=f"{url}/max",
        timeout=timeout,
        upload_timeout=timeout,
        others=[BoardAdapter(client, url, timeout)],
    )
    return made[name]


PLATFORMS: dict[str, Callable[[], AbstractAsyncContextManager[Platform]]] = {
    "telegram": lambda: simulated("telegram"),
    "max": lambda: simulated("max"),
    "board": on_board,
}


@pytest.fixture(params=PLATFORMS)
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    async with PLATFORMS[request.param]() as running:
        yield running


@pytest.fixture
async def telegram() -> AsyncIterator[Simulated]:
    async with simulated("telegram") as running:
        yield running


@pytest.fixture
async def max_() -> AsyncIterator[Simulated]:
    async with simulated("max") as running:
        yield running
