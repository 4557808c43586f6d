"""A simulator in the test's own loop, on a free port, with a clock that moves only when told."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from autopost_simulator import Simulator, listening

TELEGRAM_TOKEN = "1001:telegram-token"
MAX_TOKEN = "max-token"
CHANNEL = -1001000000001
MAX_CHANNEL = -7001


class StillClock:
    def __init__(self) -> None:
        self._passed = timedelta(0)

    def monotonic_ns(self) -> int:
        return 5_000_000_000 + self._passed // timedelta(microseconds=1) * 1_000

    def now(self) -> datetime:
        return datetime(2026, 3, 1, tzinfo=UTC) + self._passed

    def advance(self, seconds: float) -> None:
        self._passed += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


class Client:
    """Speaks plain HTTP to a simulator, as any foreign client would."""

    def __init__(self, base: str, session: aiohttp.ClientSession) -> None:
        self.base = base
        self.session = session

    async def ask(self, verb: str, path: str, **options: Any) -> Answer:
        async with self.session.request(verb, self.base + path, **options) as response:
            raw = await response.read()
            body = msgspec.json.decode(raw) if response.content_type == "application/json" else raw.decode()
            return Answer(response.status, dict(response.headers), body)

    async def telegram(self, method: str, token: str = TELEGRAM_TOKEN, **params: Any) -> Answer:
        return await self.ask("POST", f"/bot{token}/{method}", json=params)

    async def send(self, text: str = "hello", chat_id: int | str = CHANNEL, **params: Any) -> Answer:
        return await self.telegram("sendMessage", chat_id=chat_id, text=text, **params)

    async def max(self, verb: str, path: str, token: str = MAX_TOKEN, **options: Any) -> Answer:
        return await self.ask(verb, f"/max{path}", headers={"Authorization": token}, **options)

    async def post(self, text: str = "hello", chat_id: int = MAX_CHANNEL, **body: Any) -> Answer:
        return await self.max("POST", f"/messages?chat_id={chat_id}", json={"text": text, **body})

    async def control(self, path: str, body: Any) -> Answer:
        return await self.ask("POST", f"/_sim/{path}", json=body)

    async def fault(self, effect: dict[str, Any], **matchers: Any) -> None:
        answer = await self.control("faults", {"effect": effect, **matchers})
        assert answer.status == 200, answer.body

    async def log(self, query: str = "") -> list[dict[str, Any]]:
        async with self.session.get(f"{self.base}/_sim/log{query}") as response:
            assert response.status == 200, await response.text()
            return [msgspec.json.decode(line) for line in (await response.read()).splitlines()]

    async def shown(self, platform: str = "telegram", chat_id: int = CHANNEL) -> list[str]:
        answer = await self.ask("GET", f"/_sim/chats/{platform}/{chat_id}/messages")
        return [message["text"] for message in answer.body["messages"]]


Start = Callable[..., Awaitable[Client]]


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def start(clock: StillClock) -> AsyncIterator[Start]:
    """Start a simulator with the given options and get a client of it."""
    async with AsyncExitStack() as running:

        async def run(**options: Any) -> Client:
            simulator = Simulator(**{"clock": clock, **options})
            url = await running.enter_async_context(listening(simulator))
            session = await running.enter_async_context(aiohttp.ClientSession())
            return Client(url, session)

        yield run


@pytest.fixture
async def client(start: Start) -> Client:
    """One token and one channel on each platform, without limits."""
    return await prepared(await start())


async def prepared(client: Client) -> Client:
    await client.control("tokens", {"platform": "telegram", "token": TELEGRAM_TOKEN, "limits": []})
    await client.control("tokens", {"platform": "max", "token": MAX_TOKEN, "limits": []})
    await client.control("chats", {"platform": "telegram", "id": CHANNEL, "title": "News", "limits": []})
    await client.control("chats", {"platform": "max", "id": MAX_CHANNEL, "title": "News", "limits": []})
    return client


@pytest.fixture
async def lenient(start: Start) -> Client:
    """As ``client``, but what the platforms ignore is ignored."""
    return await prepared(await start(strict=False))


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "simulator.log"
