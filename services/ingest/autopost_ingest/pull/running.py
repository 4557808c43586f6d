"""Wire pull and run it beside the doors of ingest."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from autopost_contracts.subjects import Topology
from autopost_runtime.jetstream import Bus
from autopost_runtime.postgres import Database
from autopost_runtime.service import Service

from autopost_ingest.config import IngestConfig
from autopost_ingest.pull.bring import Limits, Wake
from autopost_ingest.pull.documents import Budget, Fetch
from autopost_ingest.pull.gateway import PullGateway
from autopost_ingest.pull.one import PullOne
from autopost_ingest.pull.reader import Reader
from autopost_ingest.pull.schedule import Pace, Puller
from autopost_ingest.pull.secrets import PullSecrets


@asynccontextmanager
async def pulling(
    config: IngestConfig,
    service: Service,
    database: Database,
    fetch: Fetch,
    bus: Bus,
    staged: asyncio.Event | None,
) -> AsyncIterator[None]:
    """Without ``staged`` there is no store for media, so posts are made of words and links alone."""
    if not config.pull_concurrency:
        yield
        return
    gateway = PullGateway(database)
    pace = Pace(
        concurrency=config.pull_concurrency,
        per_workspace=config.pull_per_workspace,
        budget=config.pull_timeout,
        lease=config.pull_timeout * 2,
        poll=config.poll_interval,
    )
    limits = Limits(
        chunk=config.pull_chunk, lease=pace.lease, audit_deduped=config.audit_deduped, with_media=staged is not None
    )
    budget = Budget(size=config.pull_size_limit, within=config.fetch_timeout, idle=config.fetch_idle_timeout)
    async with Reader() as reader:
        wake = Wake(bus, Topology(config.nats_namespace), staged)
        one = PullOne(gateway, PullSecrets(gateway), fetch, reader, wake, budget, limits)
        puller = Puller(gateway, one, pace)
        running = service.spawn(puller.run(service), "pull")
        try:
            yield
        finally:
            await asyncio.wait({running})
