"""A dispatcher's surroundings, for tests that let it really send."""

from collections.abc import AsyncIterator

import pytest
from autopost_simulator import Simulator, listening
from db.support.builders import Tenant
from harness.buckets import Bucket
from harness.databases import Database
from harness.http_client import http_client

from dispatcher.support.running_dispatcher import RunningDispatchers


@pytest.fixture
async def stage(database: Database, s3: Bucket) -> AsyncIterator[RunningDispatchers]:
    async with listening(Simulator(open_to_all=True)) as simulator, http_client(timeout=30) as http:
        yield RunningDispatchers(await Tenant.create(database.pool), simulator, http, s3)
