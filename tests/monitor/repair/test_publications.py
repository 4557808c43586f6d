"""Commands that were left behind are published once, and publications whose time has passed are paused."""

from datetime import timedelta

import pytest
from autopost_contracts.subjects import Topology
from autopost_monitor.gateway import Gateway
from autopost_monitor.repair.publications import CommandRelay, MissedPublications
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.nats.bus import NotPublished
from autopost_runtime.postgres.pool import open_database
from db.support.builders import Tenant
from db.support.publications import Publisher
from harness.databases import Database


class Stream:
    """What is published, by message id; ``denied`` of them are refused."""

    def __init__(self, *, connected: bool = True, denied: int = 0) -> None:
        self.topology = Topology()
        self.connected = connected
        self.stored: dict[str, str] = {}
        self._denied = denied

    async def publish(self, subject: str, payload: bytes, *, msg_id: str, headers: dict[str, str]) -> bool:
        if self._denied:
            self._denied -= 1
            raise NotPublished("no")
        self.stored[msg_id] = subject
        return True


@pytest.fixture
async def publisher(database: Database) -> Publisher:
    return await Publisher.create(await Tenant.create(database.pool))


@pytest.fixture
async def gateway(database: Database):
    config = ServiceConfig(database_url=database.url, database_role="autopost_monitor")
    async with open_database(config, "monitor") as opened:
        yield Gateway(opened)


async def left_behind(publisher: Publisher, count: int) -> None:
    for nth in range(count):
        await publisher.scheduled(f"ad {nth}")
    await publisher.due()
    await publisher.tenant.db.execute("UPDATE command_outbox SET created_at = created_at - interval '1 minute'")


async def test_what_was_left_behind_is_published_and_noted(publisher, gateway):
    await left_behind(publisher, 3)
    stream = Stream()

    await CommandRelay(gateway, stream).run_once()  # type: ignore[arg-type]

    assert set(stream.stored.values()) == {"delivery.commands"}
    assert len(stream.stored) == 3
    assert await gateway.unpublished_commands(timedelta(0), 10) == []


async def test_what_is_refused_is_published_the_next_time(publisher, gateway):
    await left_behind(publisher, 3)
    stream = Stream(denied=2)
    relay = CommandRelay(gateway, stream)  # type: ignore[arg-type]

    await relay.run_once()
    assert len(await gateway.unpublished_commands(timedelta(0), 10)) == 2
    await relay.run_once()

    assert await gateway.unpublished_commands(timedelta(0), 10) == []


async def test_without_nats_nothing_is_lost(publisher, gateway):
    await left_behind(publisher, 1)

    await CommandRelay(gateway, Stream(connected=False)).run_once()  # type: ignore[arg-type]

    assert len(await gateway.unpublished_commands(timedelta(0), 10)) == 1


async def test_what_waited_for_too_long_is_paused(publisher, gateway):
    publication = await publisher.begun(late_after="1 hour")
    await publisher.tenant.db.execute("UPDATE publications SET scheduled_at = scheduled_at - interval '2 hours'")

    await MissedPublications(gateway).run_once()

    assert (await publisher.show(publication))["pause_code"] == "missed"
