"""Wire what fetches the media of staged posts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from autopost_runtime.addresses import Guard
from autopost_runtime.fetch import Fetcher
from autopost_runtime.objects import open_objects
from autopost_runtime.service import Service

from autopost_ingest.bring import Bringer
from autopost_ingest.config import IngestConfig
from autopost_ingest.download import Downloader, Limits
from autopost_ingest.enqueue import Enqueuer
from autopost_ingest.materialize import Materializer
from autopost_ingest.staged_gateway import StagedGateway
from autopost_ingest.staging import Pace, Workers


def fetcher_of(config: IngestConfig) -> Fetcher:
    return Fetcher(Guard(config.fetch_allow, config.fetch_ports, config.fetch_deny))


def downloader_of(config: IngestConfig, fetcher: Fetcher) -> Downloader:
    limits = Limits(
        image=config.fetch_image_limit,
        video=config.fetch_video_limit,
        file=config.fetch_file_limit,
        within=config.fetch_timeout,
        idle=config.fetch_idle_timeout,
    )
    return Downloader(fetcher, limits)


@asynccontextmanager
async def fetching(
    config: IngestConfig,
    service: Service,
    gateway: StagedGateway,
    materializer: Materializer,
    enqueuer: Enqueuer,
    downloader: Downloader,
    staged: asyncio.Event | None,
) -> AsyncIterator[None]:
    """Without ``staged`` there is no store, so nothing is ever staged here; another replica may have one."""
    if staged is None:
        yield
        return
    pace = Pace(
        concurrency=config.fetch_concurrency,
        per_workspace=config.fetch_per_workspace,
        lease=config.fetch_lease,
        poll_interval=config.poll_interval,
    )
    async with open_objects(config) as objects:
        bringer = Bringer(gateway, downloader, objects)
        workers = Workers(gateway, bringer, materializer, enqueuer, pace, staged=staged)
        async with workers.running(service):
            yield
