"""A tenant in a database of the test's own."""

from collections.abc import AsyncIterator

import pytest
from db.builders import Tenant
from db.consistency import consistent
from harness.databases import Database


@pytest.fixture
async def tenant(database: Database) -> AsyncIterator[Tenant]:
    """A fresh workspace; when the test is over, its queue still agrees with its deliveries."""
    made = await Tenant.create(database.pool)
    yield made
    await consistent(database.pool, made.workspace, made.now)
