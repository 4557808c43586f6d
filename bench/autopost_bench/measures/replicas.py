"""Dispatchers in processes of their own, on one database, started at one moment."""

import contextlib
from collections.abc import AsyncIterator

from autopost_bench.machine.tenants import ENVIRONMENT, Tenant
from autopost_bench.measures.drain import warm_up
from autopost_bench.programs.children import Child, child


@contextlib.asynccontextmanager
async def replicas(count: int, tenant: Tenant, provider: str) -> AsyncIterator[list[Child]]:
    """Ready and waiting for ``go``."""
    env = {
        "AUTOPOST_DATABASE_URL": tenant.url,
        "AUTOPOST_LOG_LEVEL": "warning",
        "AUTOPOST_NATS_URL": "off",
        **ENVIRONMENT,
    }
    async with contextlib.AsyncExitStack() as running:
        started = [
            await running.enter_async_context(child("replica", provider, str(await warm_up(tenant)), env=env))
            for _ in range(count)
        ]
        for one in started:
            await one.expect("ready")
        yield started
