"""A client of the chat stream that reads as an EventSource does, and remembers everything."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from harness.eventually import eventually
from harness.http_client import http_client


class Listener:
    def __init__(self) -> None:
        self.status = 0
        self.headers = httpx.Headers()
        self.events: list[tuple[int, dict[str, Any]]] = []
        self.comments: list[str] = []
        self.retry: int | None = None
        self.last_id: str | None = None
        self.over = False

    @property
    def ids(self) -> list[int]:
        return [number for number, _ in self.events]

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for _, event in self.events]

    @property
    def actions(self) -> list[tuple[str, str]]:
        return [(e["action"]["actionId"], e["action"]["status"]) for _, e in self.events if e["type"] == "bot_action"]

    async def heard(self, count: int) -> None:
        await eventually(lambda: len(self.events) >= count)

    async def read(self, response: httpx.Response) -> None:
        self.status, self.headers = response.status_code, response.headers
        data: str | None = None
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            match name:
                case "retry":
                    self.retry = int(value)
                case "id":
                    self.last_id = value
                case "data":
                    data = value
                case "" if line:
                    self.comments.append(value)
                case "" if data is not None:
                    self.events.append((int(self.last_id or -1), json.loads(data)))
                    data = None
                case "event":
                    raise AssertionError("an event field: onmessage would not fire")


@asynccontextmanager
async def listening(
    url: str, *, headers: dict[str, str] | None = None, connected: bool = True, **query: Any
) -> AsyncIterator[Listener]:
    """``connected``: wait for the first bytes."""
    listener = Listener()

    async def run() -> None:
        try:
            async with http_client(timeout=None) as http, http.stream("GET", url, headers=headers, params=query) as got:
                await listener.read(got)
        except httpx.HTTPError:
            pass
        finally:
            listener.over = True

    task = asyncio.create_task(run())
    try:
        if connected:
            await eventually(lambda: listener.comments or listener.over)
        yield listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
