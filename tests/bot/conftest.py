"""Replicas of the bot's HTTP service."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from harness.databases import Database

from bot.support.replicas import Replica, lift_rate, replica

StartReplica = Callable[..., Awaitable[Replica]]


@pytest.fixture
async def start_replica(seeded_database: Database, nats_url: str, nats_namespace: str) -> AsyncIterator[StartReplica]:
    """Each call starts one more, on the same database."""
    await lift_rate(seeded_database)
    async with AsyncExitStack() as ending:

        async def start(**options: Any) -> Replica:
            given = {"nats_url": nats_url, **options}
            return await ending.enter_async_context(replica(seeded_database, namespace=nats_namespace, **given))

        yield start


@pytest.fixture
async def bot(start_replica: StartReplica) -> Replica:
    return await start_replica()
