"""A customer who talks to the demo workspace's bot in the simulated MAX."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from uuid import uuid4

import httpx
import msgspec

from autopost_cli.development import TOKENS

TOKEN = TOKENS["AUTOPOST_DEMO_MAX_TOKEN"]
PEOPLE = 10**9


class Until(Protocol):
    async def __call__(self, what: str, found: Callable[[], Awaitable[Any]]) -> Any: ...


class Customer:
    """A new person in each run, so a conversation of an earlier one is not continued."""

    def __init__(self, http: httpx.AsyncClient, simulator: str, until: Until) -> None:
        self._http = http
        self._simulator = simulator
        self._until = until
        self._user_id = PEOPLE + uuid4().int % PEOPLE
        self._chat: int | None = None

    async def does(self, deed: str, **fields: Any) -> dict[str, Any]:
        """The update that the bot gets."""
        url = f"{self._simulator}/_sim/max/customers/{self._user_id}/{deed}"
        response = await self._http.post(url, json={"token": TOKEN, **fields})
        response.raise_for_status()
        update: dict[str, Any] = response.json()["update"]
        self._chat = update.get("chat_id", self._chat)
        return update

    async def answers(self, count: int, what: str) -> list[dict[str, Any]]:
        """The accepted messages of the bot in the dialog, in order of arrival, once there are so many."""

        async def found() -> list[dict[str, Any]] | None:
            response = await self._http.get(
                f"{self._simulator}/_sim/log",
                params={"platform": "max", "chat": str(self._chat), "verdict": "accepted"},
            )
            response.raise_for_status()
            lines = [msgspec.json.decode(line) for line in response.content.splitlines() if line]
            sent = [line for line in lines if line["method"] == "POST /messages"]
            return sent if len(sent) >= count else None

        answers: list[dict[str, Any]] = await self._until(what, found)
        return answers
