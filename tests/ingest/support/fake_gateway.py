"""A gateway whose ``admit_posts`` calls return when the test says so, and pushes that wait for them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Self
from uuid import uuid4

from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_ingest.admission import batching as together
from autopost_ingest.admission.batching import AdmissionBatcher
from autopost_ingest.gateway import Endpoint, Push, Verdict
from harness.eventually import eventually
from msgspec import Raw

ENDPOINT = Endpoint(
    workspace_id=WorkspaceId(uuid4()),
    endpoint_id=EndpointId(uuid4()),
    workspace_status="active",
    max_payload_bytes=1024,
)


class Calls:
    """Stands in for the database: every call waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.open = asyncio.Event()
        self.faults: dict[str, Exception] = {}
        self.looked_up: list[str] = []
        self.routed = 1
        self.duplicates: set[str] = set()
        self.ended = 0
        self.connections = 0
        self.others_wait = False
        self.away: Exception | None = None
        self._waiting: list[asyncio.Event] = []

    async def are_busy(self) -> None:
        """As many calls as there may be are under way; whoever was there before has called or is in line."""
        await eventually(lambda: len(self.batches) - self.ended == together.MAX_CALLS)

    def let_one_go(self) -> None:
        """The one that has waited longest."""
        self._waiting.pop(0).set()

    @asynccontextmanager
    async def on_one_connection(self) -> AsyncIterator[Self]:
        if self.away is not None:
            raise self.away
        self.connections += 1
        yield self

    async def _next(self) -> None:
        mine = asyncio.Event()
        self._waiting.append(mine)
        await asyncio.wait(
            [asyncio.create_task(event.wait()) for event in (mine, self.open)], return_when=asyncio.FIRST_COMPLETED
        )

    async def admit_posts(
        self, _: Endpoint, posts: Sequence[Push], *, audit_deduped: bool, look_up: bool
    ) -> list[Verdict]:
        assert not audit_deduped
        names = [push.payload_hash for push in posts]
        self.batches.append(names)
        self.looked_up += names if look_up else []
        await self._next()
        self.ended += 1
        for name in names:
            if name in self.faults:
                raise self.faults[name]
        return [self._verdict(name) for name in names]

    def _verdict(self, name: str) -> Verdict:
        if name in self.duplicates:
            return Verdict(verdict="duplicate", of=name)
        return Verdict(verdict="accepted", run_id=RunId(uuid4()), routed=self.routed, of=name)


def pushing(admissions: AdmissionBatcher, *names: str, size: int = 10) -> list[asyncio.Task[Verdict]]:
    return [
        asyncio.create_task(admissions.admit(ENDPOINT, Push(post=Raw(b"x" * size), payload_hash=name)))
        for name in names
    ]
