"""Wire the workers that fetch the media of staged posts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from autopost_runtime.fetch.addresses import Guard
from autopost_runtime.fetch.fetch import Fetcher
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.storage.objects import open_objects

from autopost_ingest.config import IngestConfig
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.staging.download import Downloader, DownloadLimits
from autopost_ingest.staging.gateway import StagedGateway
from autopost_ingest.staging.media_import import MediaImporter
from autopost_ingest.staging.staging import StagingLimits, StagingWorkers


def fetcher_of(config: IngestConfig) -> Fetcher:
    return Fetcher(Guard(config.fetch_allow, config.fetch_ports, config.fetch_deny))


def downloader_of(config: IngestConfig, fetcher: Fetcher) -> Downloader:
    limits = DownloadLimits(
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
    stored_media: StoredMedia,
    enqueuer: Enqueuer,
    downloader: Downloader,
    staged: asyncio.Event | None,
) -> AsyncIterator[None]:
    """Without ``staged`` there is no object store: this replica stages and fetches nothing."""
    if staged is None:
        yield
        return
    pace = StagingLimits(
        concurrency=config.fetch_concurrency,
        per_workspace=config.fetch_per_workspace,
        lease=config.fetch_lease,
        poll_interval=config.poll_interval,
    )
    async with open_objects(config) as objects:
        importer = MediaImporter(gateway, downloader, objects)
        workers = StagingWorkers(gateway, importer, stored_media, enqueuer, pace, staged=staged)
        async with workers.running(service):
            yield
