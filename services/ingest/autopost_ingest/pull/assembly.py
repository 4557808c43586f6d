"""Wire the pull scheduler and run it beside the HTTP server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from autopost_contracts.subjects import Topology
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.pool import Database

from autopost_ingest.config import IngestConfig
from autopost_ingest.posts.offload import Offload
from autopost_ingest.pull.gateway import PullGateway
from autopost_ingest.pull.import_items import ImportLimits, Waker
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.pull_source import SourcePuller
from autopost_ingest.pull.scheduler import PullLimits, PullScheduler
from autopost_ingest.pull.secrets import PullSecrets
from autopost_ingest.pull.sources.fetch_document import Budget, Fetch


@asynccontextmanager
async def pulling(
    config: IngestConfig,
    service: Service,
    database: Database,
    fetch: Fetch,
    bus: Bus,
    staged: asyncio.Event | None,
    offload: Offload,
) -> AsyncIterator[None]:
    """Without ``staged`` there is no object store, so posts have text and links only."""
    if not config.pull_concurrency:
        yield
        return
    gateway = PullGateway(database)
    pace = pace_of(config)
    limits, budget = limits_of(config, with_media=staged is not None), budget_of(config)
    async with DocumentReader(cpu=config.pull_read_cpu) as reader:
        wake = Waker(bus, Topology(config.nats_namespace), staged)
        one = SourcePuller(gateway, PullSecrets(gateway), fetch, reader, wake, budget, limits, offload)
        puller = PullScheduler(gateway, one, pace)
        running = service.spawn(puller.run(service), "pull")
        try:
            yield
        finally:
            await asyncio.wait({running})


def pace_of(config: IngestConfig) -> PullLimits:
    return PullLimits(
        concurrency=config.pull_concurrency,
        per_workspace=config.pull_per_workspace,
        budget=config.pull_timeout,
        lease=config.pull_timeout * 2,
        poll=config.poll_interval,
    )


def limits_of(config: IngestConfig, *, with_media: bool) -> ImportLimits:
    return ImportLimits(
        chunk=config.pull_chunk,
        lease=config.pull_timeout * 2,
        audit_deduped=config.audit_deduped,
        with_media=with_media,
    )


def budget_of(config: IngestConfig) -> Budget:
    return Budget(size=config.pull_size_limit, within=config.fetch_timeout, idle=config.fetch_idle_timeout)
