"""Ingest as a sender meets it. Real HTTP, real Postgres."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from autopost_contracts.subjects import Topology
from autopost_ingest.admission.admit import Admission
from autopost_ingest.dry_run.dry_run import DryRunner
from autopost_ingest.dry_run.media import DryMedia
from autopost_ingest.gateway import Gateway
from autopost_ingest.http.post_changes import PostChangesHandler
from autopost_ingest.http.post_status import PostStatusHandler
from autopost_ingest.http.receive import PostReceiver, application
from autopost_ingest.posts.enqueue import Enqueuer
from autopost_ingest.posts.offload import Offload
from autopost_ingest.posts.post_gateway import PostGateway
from autopost_ingest.posts.stored_media import StoredMedia
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.http.web import serve
from autopost_runtime.postgres.pool import open_database
from harness.databases import Database
from harness.http_client import http_client

from ingest.support.ingest_client import Ear, IngestClient
from ingest.support.pictures import Pictures, pictures


@pytest.fixture
async def client(seeded_database: Database) -> AsyncIterator[IngestClient]:
    config = ServiceConfig(database_url=seeded_database.url, database_role="autopost_ingest", database_pool=20)
    async with open_database(config, "ingest") as database, http_client(timeout=30) as http:
        gateway, ear = Gateway(database), Ear()
        enqueuer = Enqueuer(gateway, ear, Topology(), audit_deduped=False)  # type: ignore[arg-type]
        stored_media = StoredMedia(gateway)
        admission = Admission(gateway, timedelta(seconds=20), parser=Offload())
        dry_runner = DryRunner(admission, gateway, DryMedia(stored_media, None, offload=Offload()))
        app = application(admission, stored_media, enqueuer, dry_runner)
        posts = PostGateway(database)
        PostStatusHandler(admission, posts).add_to(app)
        receiver = PostReceiver(admission, stored_media, enqueuer, dry_runner)
        PostChangesHandler(admission, posts, receiver, enqueuer).add_to(app)
        async with await serve(app, "127.0.0.1", 0) as site:
            yield IngestClient(site.url, http, seeded_database, ear)


@pytest.fixture
async def site() -> AsyncIterator[Pictures]:
    """Where media is fetched from."""
    async with pictures() as made:
        yield made
