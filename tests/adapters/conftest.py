"""Each platform's adapter against its simulator, over real HTTP."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from autopost_adapters.base import Accepted, Adapter, Target
from autopost_adapters.registry import adapters
from autopost_contracts.outcomes import Failed
from autopost_contracts.plan import Part, TextPart
from autopost_runtime.config import Secret
from autopost_runtime.http import HttpClient
from autopost_simulator import Simulator, listening

TOKENS = {"telegram": "1000001:adapter-tests-token-0123456789abcdef", "max": "adapter-tests-token"}
CHATS = {"telegram": "-1001000000001", "max": "-70000000000001"}


class Platform:
    """One adapter, one chat, and the strings to pull at the simulator."""

    def __init__(self, name: str, url: str, adapter: Adapter, http: httpx.AsyncClient) -> None:
        self.name = name
        self.url = url
        self.adapter = adapter
        self._http = http

    async def send(self, part: Part | None = None, token: str | None = None) -> Accepted | Failed:
        target = Target(chat=CHATS[self.name], token=Secret(token or TOKENS[self.name]))
        return await self.adapter.send(part or TextPart(text="hello"), target)

    async def misbehave(self, **effect: Any) -> None:
        answer = await self._http.post(f"{self.url}/_sim/faults", json={"name": "fault", "effect": effect})
        answer.raise_for_status()

    async def shown(self) -> list[dict[str, Any]]:
        answer = await self._http.get(f"{self.url}/_sim/chats/{self.name}/{CHATS[self.name]}/messages")
        shown: list[dict[str, Any]] = answer.json()["messages"]
        return shown


@pytest.fixture(params=["telegram", "max"])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    name: str = request.param
    async with (
        listening(Simulator(open_to_all=True)) as url,
        HttpClient() as client,
        httpx.AsyncClient() as http,
    ):
        both = adapters(client, telegram_url=url, max_url=f"{url}/max", timeout=timedelta(seconds=1))
        chat = {"platform": name, "id": int(CHATS[name]), "limits": []}
        (await http.post(f"{url}/_sim/chats", json=chat)).raise_for_status()
        token = {"platform": name, "token": TOKENS[name], "limits": []}
        (await http.post(f"{url}/_sim/tokens", json=token)).raise_for_status()
        yield Platform(name, url, both[name], http)
