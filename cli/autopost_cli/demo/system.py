"""Access to the running system for the demo: the HTTP API, the database and the simulator."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid4

import asyncpg
import httpx
import msgspec

from autopost_cli.demo.customer import Customer
from autopost_cli.development import PUBLICATION_SECRET, PUSH_SECRET, WORKSPACE
from autopost_cli.schema import schema_files

T = TypeVar("T")
Row = Mapping[str, Any]

POLL_INTERVAL = 0.05


class ConditionNotMet(Exception):  # noqa: N818  named for what happened
    """A condition did not become true in time."""


class NatsSwitch(Protocol):
    async def stop_nats(self) -> None: ...
    async def start_nats(self) -> None: ...


class DemoSystem:
    def __init__(
        self,
        database: "asyncpg.Connection[Any]",
        http: httpx.AsyncClient,
        ingest: str,
        simulator: str,
        patience: timedelta,
        nats: NatsSwitch | None = None,
        wait: timedelta = timedelta(seconds=5),
    ) -> None:
        """``nats``: a server that the demo may stop and start again. ``wait``: until a publication is due."""
        self.wait = wait
        self._database = database
        self._http = http
        self._ingest = ingest
        self._simulator = simulator
        self._patience = patience
        self._nats = nats
        self.customer = Customer(http, simulator, self.until)
        self.run = uuid4().hex[:8]
        """Part of every text, so that posts of different runs differ."""

    async def post(self, text: str, channels: list[UUID] | None = None) -> dict[str, Any]:
        """Send a post with the tag ``demo``, and return the answer of ingest."""
        routing = {"channels": [str(channel) for channel in channels]} if channels else {}
        answer = await self._http.post(
            f"{self._ingest}/v1/posts",
            headers={"Authorization": f"Bearer {PUSH_SECRET}"},
            json={"text": f"{text} [{self.run}]", "tags": ["demo"], "routing": routing, "source_ref": uuid4().hex},
        )
        answer.raise_for_status()
        answered: dict[str, Any] = answer.json()
        if answered["message_id"] is None:
            raise ConditionNotMet("no channel takes the post")
        return answered | {"http_status": answer.status_code}

    async def draft(self, channel: UUID, text: str) -> dict[str, Any]:
        """A publication of this run."""
        body = {"channel_id": str(channel), "creative_draft": {"text": f"{text} [{self.run}]"}}
        return await self._publications("", body)

    async def publication(self, publication: UUID, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """A change of one that nobody else changes: of its first version."""
        return await self._publications(f"/{publication}/{verb}", body or {})

    async def _publications(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self._http.post(
            f"{self._ingest}/v1/publications{path}",
            headers={"Authorization": f"Bearer {PUBLICATION_SECRET}", "If-Match": '"1"'},
            json=body,
        )
        answer.raise_for_status()
        answered: dict[str, Any] = answer.json()
        return answered

    @asynccontextmanager
    async def without_nats(self) -> AsyncIterator[bool]:
        """Whether there is one that could be stopped."""
        if self._nats:
            await self._nats.stop_nats()
        try:
            yield self._nats is not None
        finally:
            if self._nats:
                await self._nats.start_nats()

    async def sql(self, name: str, *args: Any) -> list[Row]:
        return [
            dict(row) for row in await self._database.fetch(schema_files.statement(f"demo/{name}"), WORKSPACE, *args)
        ]

    async def deliveries(self, answer: dict[str, Any]) -> list[Row]:
        return await self.sql("deliveries", UUID(answer["message_id"]))

    async def events(self, *, message: str | None = None, channel: UUID | None = None) -> list[Row]:
        return await self.sql("events", UUID(message) if message else None, channel)

    async def calls(self, text: str) -> list[dict[str, Any]]:
        """The provider calls with this text, in order of arrival."""
        answer = await self._http.get(f"{self._simulator}/_sim/log")
        answer.raise_for_status()
        lines = [msgspec.json.decode(line) for line in answer.content.splitlines() if line]
        return [line for line in lines if f"{text} [{self.run}]" in (line["text"] or "")]

    async def script(self, name: str, effect: dict[str, Any], **match: Any) -> None:
        """Add a fault to the simulator."""
        answer = await self._http.post(f"{self._simulator}/_sim/faults", json={"name": name, "effect": effect, **match})
        answer.raise_for_status()

    async def unscript(self) -> None:
        (await self._http.delete(f"{self._simulator}/_sim/faults")).raise_for_status()

    async def until(self, what: str, found: Callable[[], Awaitable[T | None]]) -> T:
        """Wait until the condition returns a true value."""
        deadline = time.monotonic() + self._patience.total_seconds()
        while True:
            result = await found()
            if result:
                return result
            if time.monotonic() > deadline:
                raise ConditionNotMet(f"{what}: not within {self._patience.total_seconds():g} s")
            await asyncio.sleep(POLL_INTERVAL)

    async def settled(self, answer: dict[str, Any]) -> list[Row]:
        """The deliveries of a post, once each has ended."""

        async def ended() -> list[Row] | None:
            rows = await self.deliveries(answer)
            final = all(row["status"] in ("sent", "failed_permanent", "dead", "deduped") for row in rows)
            return rows if rows and final else None

        return await self.until("every delivery has ended", ended)
