"""A tenant in a database of the test's own."""

from collections.abc import AsyncIterator

import pytest
from db.support.bots import Bot
from db.support.builders import Tenant
from db.support.consistency import anonymous, consistent
from db.support.operators import Operator
from db.support.senders import make_sender
from db.support.staging import Staging
from harness.databases import Database


@pytest.fixture
async def tenant(database: Database) -> AsyncIterator[Tenant]:
    """A fresh workspace; when the test is over, its queue still agrees with its deliveries, and its events say whose
    they are.
    """
    made = await Tenant.create(database.pool)
    yield made
    await consistent(database.pool, made.workspace, made.now)
    assert await anonymous(database.pool, made.workspace) == []


@pytest.fixture
async def operator(tenant: Tenant) -> AsyncIterator[Operator]:
    """Works by hand in the tenant's workspace; when the test is over, what was given up is known to be so."""
    made = Operator(tenant)
    yield made
    assert await made.disagreements() == []


@pytest.fixture
async def staging(tenant: Tenant) -> Staging:
    """Two channels, and a sender whose posts are staged for them."""
    await tenant.channels(2)
    return Staging(tenant, await make_sender(tenant))


@pytest.fixture
async def bot(tenant: Tenant) -> Bot:
    """The tenant's bot, without limits."""
    return await Bot.create(tenant)
