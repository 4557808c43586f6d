"""Publications as a replica of ingest starts them. Real Postgres, real NATS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from autopost_contracts.subjects import Topology
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.nats.bus import ensure_streams, open_bus
from autopost_runtime.postgres.pool import open_database
from autopost_simulator import Simulator, listening
from db.support.builders import Tenant
from dispatcher.support.running_dispatcher import RunningDispatchers
from harness.buckets import Bucket
from harness.databases import Database
from harness.eventually import eventually
from harness.http_client import http_client
from ingest.support.publishing_replica import Replica, StartReplica


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


@pytest.fixture
async def start_replica(
    database: Database, tenant: Tenant, nats_url: str, nats_namespace: str
) -> AsyncIterator[StartReplica]:
    """Each call starts one more, on the same database; ``nats=False`` without NATS, ``run=False`` with no loops,
    ``server`` at another NATS than that of the run."""
    topology = Topology(nats_namespace)
    await ensure_streams(nats_url, topology)
    tasks: list[asyncio.Task[None]] = []
    async with AsyncExitStack() as ending:

        async def start(*, nats: bool = True, run: bool = True, server: str = nats_url) -> Replica:
            config = ServiceConfig(
                database_url=database.url,
                database_role="autopost_ingest",
                nats_url=server if nats else None,
                nats_namespace=topology.namespace,
            )
            opened = await ending.enter_async_context(open_database(config, "ingest"))
            bus = await ending.enter_async_context(open_bus(config, "ingest"))
            if nats:
                await eventually(lambda: bus.connected)
            replica = Replica(opened, bus, tenant)
            if run:
                tasks.extend(replica.run())
            return replica

        yield start
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def stage(tenant: Tenant, s3: Bucket) -> AsyncIterator[RunningDispatchers]:
    """The tenant's chats in a simulated platform, for tests that let dispatchers send."""
    async with listening(Simulator(open_to_all=True)) as simulator, http_client(timeout=30) as http:
        yield RunningDispatchers(tenant, simulator, http, s3)
