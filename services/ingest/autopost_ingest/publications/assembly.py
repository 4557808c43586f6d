"""Wire publications and run them beside the HTTP server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import Bus
from autopost_runtime.postgres.pool import Database

from autopost_ingest.config import IngestConfig
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.publications.begin import PublicationStarter
from autopost_ingest.publications.commands import CommandHandler
from autopost_ingest.publications.due_loop import DueLoop
from autopost_ingest.publications.gateway import PublicationGateway
from autopost_ingest.publications.prepare import CreativeCompiler

HANDLERS = 4


@asynccontextmanager
async def publishing(
    config: IngestConfig,
    service: Service,
    database: Database,
    bus: Bus,
    enqueuer: Enqueuer,
    stored_media: StoredMedia,
) -> AsyncIterator[None]:
    gateway = PublicationGateway(database)
    starter = PublicationStarter(gateway, CreativeCompiler(enqueuer.offload, stored_media), enqueuer)
    loop = DueLoop(gateway, starter, bus, bus.topology, config.poll_interval)
    handler = CommandHandler(starter, bus, bus.topology.dead_commands)
    running = service.spawn(loop.run(service), "publications")
    service.spawn(bus.wakeups(bus.topology.publish_wakeups, loop.wake), "publish wakeups")
    service.spawn(bus.consume(bus.topology.publish_commands, handler.handle, concurrency=HANDLERS), "commands")
    try:
        yield
    finally:
        await asyncio.wait({running})
