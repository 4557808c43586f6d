"""Four tenants that nobody wants beside them: a million posts behind its rate, very many channels, a flood, a platform
that takes calls and never answers.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from autopost_contracts.ids import WorkspaceId
from autopost_runtime.postgres.identity import new_id

from autopost_bench.machine.server import connected
from autopost_bench.machine.tenants import Rates, Tenant, Writer, enqueue, make_tenant, owned
from autopost_bench.measures.busy_tenants import TenantsCase, make_tenants

DEAD = "POST /messages"
"""How each send to MAX begins."""
FEW, VERY_MANY = 40, 10_000
FLOOD = 0.05
"""Seconds between two posts of the flood, each for forty channels: thirty times what the rate allows."""
FIRST = 1_000_000
"""Chats of the others are numbered before."""


@contextlib.asynccontextmanager
async def beside(tenant: Tenant, backlog: int) -> AsyncIterator[None]:
    """In the database of this tenant; the flood lasts until the end."""
    one = TenantsCase(name="neighbour", workspaces=1, rate=27)
    await make_tenants(tenant, one, FEW, backlog // FEW, first=FIRST)
    await make_tenants(tenant, one, VERY_MANY, 2, first=2 * FIRST)
    await make_tenants(tenant, one, FEW, 1000, platform="max", first=3 * FIRST)
    async with connected(tenant.url) as connection:
        rates = Rates(group=one.rate, channel=one.channel_rate, max_parallel=1)
        flooding = await make_tenant(connection, WorkspaceId(new_id()), FEW, rates, first=4 * FIRST)
    flood = asyncio.create_task(_flood(flooding.at(tenant.url)))
    try:
        yield
    finally:
        flood.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await flood


async def _flood(tenant: Tenant) -> None:
    async with owned(tenant) as database:
        writer = await Writer.of(database, tenant)
        while True:
            await enqueue(database, tenant, *writer.write(1))
            await asyncio.sleep(FLOOD)
