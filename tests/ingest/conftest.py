"""Ingest as a sender meets it. Real HTTP, real Postgres."""

from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
from autopost_contracts.subjects import Topology
from autopost_ingest.admit import Admission
from autopost_ingest.dry_run import DryRunner
from autopost_ingest.dry_run_media import DryMedia
from autopost_ingest.enqueue import Enqueuer
from autopost_ingest.gateway import Gateway
from autopost_ingest.materialize import Materializer
from autopost_ingest.receive import application
from autopost_runtime.config import ServiceConfig
from autopost_runtime.postgres import open_database
from autopost_runtime.web import serve
from harness.databases import Database

from ingest.door import Door, Ear
from ingest.pictures import Pictures, pictures


@pytest.fixture
async def door(seeded_database: Database) -> AsyncIterator[Door]:
    config = ServiceConfig(database_url=seeded_database.url, database_role="autopost_ingest", database_pool=20)
    async with open_database(config, "ingest") as database, httpx.AsyncClient(timeout=30) as http:
        gateway, ear = Gateway(database), Ear()
        enqueuer = Enqueuer(gateway, ear, Topology(), audit_deduped=False)  # type: ignore[arg-type]
        materializer = Materializer(gateway)
        admission = Admission(gateway, timedelta(seconds=20))
        dry_runner = DryRunner(admission, gateway, DryMedia(materializer, None))
        app = application(admission, materializer, enqueuer, dry_runner)
        async with await serve(app, "127.0.0.1", 0) as site:
            yield Door(site.url, http, seeded_database, ear)


@pytest.fixture
async def site() -> AsyncIterator[Pictures]:
    """Where media is fetched from."""
    async with pictures() as made:
        yield made
