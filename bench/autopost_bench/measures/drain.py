"""Drain: claim → send nothing → commit, by the real dispatcher in this process, over more and more channels."""

import time
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

import asyncpg
from autopost_adapters.base import Adapter
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.config import DispatcherConfig
from autopost_runtime.postgres.identity import new_id

from autopost_bench.machine.server import BenchError, BenchServer, Connection, connected, vacuum
from autopost_bench.machine.tenants import (
    ALL_GATES_ON,
    Tenant,
    Writer,
    enqueue,
    make_tenant,
    owned,
    statement,
)
from autopost_bench.programs.replica import WARM_UP, NoOp, replica
from autopost_bench.report.figures import Figures

EVENTS_EACH = 3
WARM_UP_CHANNELS = 20


async def measure(server: BenchServer, figures: Figures) -> None:
    """Over few of them: see ``beside``."""
    _, many, very_many = server.counts.channels
    for name, channels in (("many", many), ("very_many", very_many)):
        server.say(f"drain over {channels:,} channels")
        async with server.tenant(channels) as tenant:
            figures.record(f"drain.{name}", await drain(tenant, server.counts.drained))


async def drain(tenant: Tenant, deliveries: int, sending: Mapping[str, Adapter] | None = None) -> float:
    """Deliveries per second from the first claim to the last commit, after which all must be as it should."""
    deliveries = await fill(tenant, deliveries)
    warm = await warm_up(tenant)
    config = DispatcherConfig(database_url=tenant.url)
    async with replica(config, sending or {NoOp.platform: NoOp()}) as running:
        await running.warm(warm)
        started = time.perf_counter()
        running.start()
        await running.reached(deliveries)
        seconds = time.perf_counter() - started
        await running.idle(tenant.workspace_id)
    await check_drained(tenant, deliveries)
    return deliveries / seconds


async def fill(tenant: Tenant, deliveries: int) -> int:
    """As ingest does it, post by post; how many there are then."""
    async with owned(tenant) as database:
        writer = await Writer.of(database, tenant)
        for post in writer.write(-(-deliveries // tenant.channels)):
            await enqueue(database, tenant, post)
        count = await database.fetchval(
            "SELECT count(*)::int FROM deliveries WHERE workspace_id = $1", tenant.workspace_id
        )
    await vacuum(tenant.url)
    return int(count)


async def warm_up(tenant: Tenant) -> WorkspaceId:
    """A second workspace with a few deliveries, for whoever has to get ready."""
    async with connected(tenant.url) as connection:
        other = await make_tenant(connection, WorkspaceId(new_id()), WARM_UP_CHANNELS, ALL_GATES_ON)
    async with owned(tenant) as database:
        for post in (await Writer.of(database, other)).write(WARM_UP // WARM_UP_CHANNELS):
            await enqueue(database, other, post)
    return other.workspace_id


async def check_drained(tenant: Tenant, deliveries: int) -> None:
    """Raises ``BenchError``: a fast drain that lost something is no drain."""
    async with connected(tenant.url) as connection:
        found = await connection.fetchrow(statement("drained"), tenant.workspace_id)
        expected = (deliveries, 0, 0, EVENTS_EACH * deliveries, 0, True)
        if found is None or tuple(found) != expected:
            raise BenchError(f"after the drain of {deliveries}: {dict(found or {})}")
        async for page in _folded(connection, tenant.workspace_id):
            if page["found"]:
                raise BenchError(f"after the drain of {deliveries}, rows are not their events: {page['differences']}")


async def _folded(connection: Connection, workspace: WorkspaceId) -> AsyncIterator[asyncpg.Record]:
    """Every row against the fold of its events, page by page."""
    after = UUID(int=0)
    while page := await connection.fetchrow("SELECT * FROM verify_deliveries($1, $2, p_most => 3)", workspace, after):
        if not page["checked"]:
            return
        yield page
        after = page["last_id"]
