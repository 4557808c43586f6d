"""Wire ingest and run it."""

import asyncio
from contextlib import nullcontext

from autopost_contracts.subjects import Topology
from autopost_runtime.http.web import serve
from autopost_runtime.lifecycle.service import Service, run
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.secrets.sealing import read_keys
from autopost_runtime.storage.objects import open_objects
from autopost_runtime.storage.payloads import Payloads
from autopost_runtime.telemetry.logs import get_logger
from autopost_runtime.workers.worker_process import WorkerProcesses

from autopost_ingest.admission.admit import Admission
from autopost_ingest.config import IngestConfig
from autopost_ingest.dry_run.dry_run import DryRunner
from autopost_ingest.dry_run.media import DryMedia
from autopost_ingest.gateway import Gateway
from autopost_ingest.http.bot_webhook import BotWebhook
from autopost_ingest.http.post_changes import PostChangesHandler
from autopost_ingest.http.post_status import PostStatusHandler
from autopost_ingest.http.publications import PublicationApi
from autopost_ingest.http.receive import PostReceiver, application
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.offload import CALLS_WAITING, Offload
from autopost_ingest.posts.post_gateway import PostGateway
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_ingest.publications.access import PublicationCallers
from autopost_ingest.publications.assembly import publishing
from autopost_ingest.publications.gateway import PublicationGateway
from autopost_ingest.publications.prepare import CreativeCompiler
from autopost_ingest.pull.assembly import pulling
from autopost_ingest.staging.assembly import downloader_of, fetcher_of, fetching
from autopost_ingest.staging.gateway import StagedGateway


async def work(config: IngestConfig, service: Service) -> None:
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        open_objects(config) if config.s3_endpoint else nullcontext() as objects,
        WorkerProcesses(waiting=CALLS_WAITING) as workers,
    ):
        offload = Offload(workers, config.upload_policy)
        gateway = Gateway(database)
        service.health.check("database", gateway.ping)
        service.health.inform("nats", lambda: bus.connected)
        topology = Topology(config.nats_namespace)
        staged = asyncio.Event() if config.s3_endpoint else None
        enqueuer = Enqueuer(gateway, bus, topology, audit_deduped=config.audit_deduped, staged=staged, offload=offload)
        stored_media = StoredMedia(gateway)
        admission = Admission(
            gateway,
            config.body_timeout,
            body_idle=config.body_idle_timeout,
            body_memory=config.body_memory,
            requests_per_workspace=config.requests_per_workspace,
            keys=read_keys(),
            payloads=Payloads(objects, "ingest", encryption=config.payload_encryption),
            parser=offload,
        )
        staged_gateway, fetcher = StagedGateway(database), fetcher_of(config)
        downloader = downloader_of(config, fetcher)
        dry_runner = DryRunner(
            admission, gateway, DryMedia(stored_media, downloader if staged else None, offload=offload)
        )
        app = application(admission, stored_media, enqueuer, dry_runner)
        BotWebhook(admission, gateway, bus, topology).add_to(app)
        posts, receiver = PostGateway(database), PostReceiver(admission, stored_media, enqueuer, dry_runner)
        PostStatusHandler(admission, posts).add_to(app)
        PostChangesHandler(admission, posts, receiver, enqueuer).add_to(app)
        publications = PublicationGateway(database)
        callers = PublicationCallers(admission, publications)
        PublicationApi(callers, publications, CreativeCompiler(offload, stored_media), bus, topology).add_to(app)
        service.spawn(admission.refusals.run(), "refusals")
        async with await serve(
            app,
            config.http_host,
            config.http_port,
            head_timeout=config.head_timeout,
            connections=config.connections,
            connections_per_address=config.connections_per_address,
        ) as site:
            get_logger().info("ingest.listening", url=site.url)
            async with (
                fetching(config, service, staged_gateway, stored_media, enqueuer, downloader, staged),
                pulling(config, service, database, fetcher, bus, staged, offload),
                publishing(config, service, database, bus, enqueuer, stored_media),
            ):
                service.health.begun()
                await service.stopping.wait()
        await admission.refusals.flush()


if __name__ == "__main__":
    run("ingest", IngestConfig, work)
