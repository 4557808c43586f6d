"""Pulling goes on after whatever the database says; a mistake of ours ends it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from autopost_ingest.pull.gateway import Claim, PullGateway
from autopost_runtime.service import Service
from harness.databases import Database
from harness.eventually import eventually

from ingest.pulls import Pulls, Site, numbered


@pytest.fixture
async def pulls(database: Database) -> Pulls:
    return await Pulls.create(database)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().open() as opened:
        yield opened


class NotYet(PullGateway):
    """The first claim meets an error of the database that nobody expects to pass."""

    def __init__(self, gateway: PullGateway, exc: Exception) -> None:
        self.__dict__.update(gateway.__dict__)
        self._faults = [exc]

    async def claim_pull_sources(self, *args: Any) -> list[Claim]:
        if self._faults:
            raise self._faults.pop()
        return await super().claim_pull_sources(*args)


async def test_one_error_of_the_database_does_not_end_pulling(pulls: Pulls, site: Site) -> None:
    await pulls.add("blog", "rss", url=site.put("/feed", numbered(3)))
    service, exc = Service("ingest"), asyncpg.InsufficientPrivilegeError("not yet")

    async def all_there() -> bool:
        return service.stopping.is_set() or len(await pulls.texts()) == 3

    async with pulls.replica(wrapped=lambda gateway: NotYet(gateway, exc)) as replica:
        running = service.spawn(replica.puller.run(service), "pull")
        await eventually(all_there)
        service.stop()
        await asyncio.wait({running})

    assert (service.exit_code, len(await pulls.texts())) == (0, 3)


async def test_a_mistake_of_ours_ends_pulling(pulls: Pulls) -> None:
    async with pulls.replica(wrapped=lambda gateway: NotYet(gateway, TypeError("wrong"))) as replica:
        with pytest.raises(TypeError):
            await replica.puller.run(Service("ingest"))
