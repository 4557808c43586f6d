"""Continuous load for kill tests: posts, claims and commits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from autopost_cli.embedded.nats import NatsServer
from db.support.builders import Tenant, sent
from harness.eventually import eventually

CLAIMERS = 8
PLENTY = timedelta(minutes=1)


class Load:
    """Posts, claims and commits continuously, with ``CLAIMERS`` claimers."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._stopping = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._produce())
            for _ in range(CLAIMERS):
                group.create_task(self._consume())
            try:
                yield
            finally:
                self._stopping.set()

    async def _produce(self) -> None:
        while not self._stopping.is_set():
            await self._tenant.enqueue()

    async def _consume(self) -> None:
        while not self._stopping.is_set():
            claims = await self._tenant.claim(5)
            if claims:
                await self._tenant.commit(*(sent(claim) for claim in claims))

    async def goes_on(self, events: int = 100) -> None:
        """Until so many more were written."""
        before = await self._tenant.count("events")

        async def enough() -> bool:
            return await self._tenant.count("events") >= before + events

        await eventually(enough, within=PLENTY)


async def killed(server: NatsServer) -> None:
    assert server.process
    server.process.kill_group()
    await server.process.exited()
