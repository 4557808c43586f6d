"""The relay: every committed event reaches AUDIT, in order, whatever happens to NATS and to the stream."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import nats
import pytest
from autopost_contracts.events import AUDIT_SCHEMA, SCHEMA_HEADER, VERSION_HEADER, AuditEvent
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.streams import ensure_streams
from db.support.builders import Tenant
from harness.databases import Database
from harness.eventually import eventually
from monitor.support.load import PLENTY, Load, killed
from monitor.support.running_relay import Audit, out_of_order, running_relay
from nats.js import JetStreamContext


@pytest.fixture
async def shop(quiet_database: Database) -> Tenant:
    tenant = await Tenant.create(quiet_database.pool)
    await tenant.channels(4)
    return tenant


@asynccontextmanager
async def jetstream(url: str) -> AsyncIterator[JetStreamContext]:
    async with await nats.connect(url) as client:
        yield client.jetstream()


async def test_an_event_is_told_with_its_id_its_schema_and_its_trace(quiet_database, shop, nats_url, nats_namespace):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await shop.enqueue(traceparent=parent)
    audit = Audit(nats_url, nats_namespace)

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        await audit.has_all_of(shop.db)

    [message, *_] = await audit.messages()
    event = msgspec.json.decode(message.data, type=AuditEvent)
    row = await shop.db.fetchrow("SELECT * FROM events WHERE id = $1", event.id)
    assert message.subject == f"{nats_namespace}.audit.{shop.workspace}.enqueue"
    assert message.headers["Nats-Msg-Id"] == str(event.id)
    assert message.headers["traceparent"] == parent
    assert (message.headers[SCHEMA_HEADER], message.headers[VERSION_HEADER]) == (AUDIT_SCHEMA, "1")
    same = ("workspace_id", "seq", "ts", "attempt", "delivery_id", "message_id", "channel_id")
    assert [getattr(event, name) for name in same] == [row[name] for name in same]
    assert event.meta == msgspec.json.decode(row["meta"])


async def test_an_event_too_large_for_nats_holds_nobody_up(quiet_database, shop, nats_url, nats_namespace):
    await shop.db.execute(
        "INSERT INTO events (workspace_id, action, meta) VALUES ($1, 'checkpoint', $2)",
        *(shop.workspace, msgspec.json.encode({"much": "x" * 2_000_000}).decode()),
    )
    await shop.enqueue()

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        [large, *_] = await Audit(nats_url, nats_namespace).has_all_of(shop.db)

    assert list(large.meta or {}) == ["omitted"]


@pytest.mark.parametrize("depth", [100, 940, 970, 3000])
@pytest.mark.parametrize("column", ["meta", "error"])
async def test_an_event_that_is_nested_too_deep_holds_nobody_up(
    quiet_database, shop, nats_url, nats_namespace, column, depth
):
    """What a database takes, not every reader of JSON does."""
    await shop.db.execute("ALTER TABLE events DISABLE TRIGGER events_are_bounded")
    await shop.db.execute(
        f"INSERT INTO events (workspace_id, action, {column}) "
        "SELECT $1, 'checkpoint', jsonb_build_object('deep', (repeat('[', $2) || repeat(']', $2))::jsonb)",
        *(shop.workspace, depth),
    )
    await shop.enqueue()

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        [deep, *others] = await Audit(nats_url, nats_namespace).has_all_of(shop.db)

    assert list(deep.meta or {}) == ["omitted"]
    assert others


async def test_nothing_is_told_twice_when_nothing_went_wrong(quiet_database, shop, nats_url, nats_namespace):
    audit, load = Audit(nats_url, nats_namespace), Load(shop)

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        async with load.running():
            await load.goes_on(500)
        told = await audit.has_all_of(shop.db)

    assert len(told) == len({event.id for event in told})
    assert out_of_order(told) == []


async def test_nats_killed_and_wiped_again_and_again_loses_nothing_and_keeps_the_order(
    quiet_database, shop, own_nats, nats_namespace
):
    audit, load = Audit(own_nats.url, nats_namespace), Load(shop)

    async with running_relay(quiet_database.url, own_nats.url, nats_namespace):
        async with load.running():
            for wipe in (False, True, False, True):
                await load.goes_on()
                await killed(own_nats)
                if wipe:
                    shutil.rmtree(own_nats.data)
                await load.goes_on()
                await own_nats.start()
                await eventually(audit.count, within=PLENTY)
        told = await audit.has_all_of(shop.db)

    assert out_of_order(told) == []


async def test_nats_killed_while_much_is_under_way_keeps_the_order(quiet_database, shop, own_nats, nats_namespace):
    """What was buffered lands after the reconnect, and what was on the wire does not."""
    audit = Audit(own_nats.url, nats_namespace)
    for _ in range(3):
        await shop.put_batch([await shop.post() for _ in range(300)])
    await shop.drain()

    async with running_relay(quiet_database.url, own_nats.url, nats_namespace):
        for part in (0.2, 0.5):
            await eventually(lambda part=part: holds(audit, shop, part), within=PLENTY)
            await killed(own_nats)
            await own_nats.start()
        told = await audit.has_all_of(shop.db)

    assert out_of_order(told) == []


async def holds(audit: Audit, tenant: Tenant, part: float) -> bool:
    return await audit.count() >= part * await tenant.count("events")


@pytest.mark.parametrize("fate", ["deleted", "made anew", "emptied"])
async def test_a_stream_that_lost_everything_gets_everything_again(
    quiet_database, shop, nats_url, nats_namespace, fate
):
    audit = Audit(nats_url, nats_namespace)
    await shop.enqueue()

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        await audit.has_all_of(shop.db)
        await FATES[fate](nats_url, audit.topology)
        told = await audit.has_all_of(shop.db)

    assert out_of_order(told) == []


@pytest.mark.parametrize("fate", ["deleted", "made anew", "emptied"])
async def test_a_stream_that_lost_everything_under_load_gets_everything_again(
    quiet_database, shop, nats_url, nats_namespace, fate
):
    """An emptied one takes the next message as if nothing had been: what it lost shows in its first number alone."""
    audit, load = Audit(nats_url, nats_namespace), Load(shop)

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        async with load.running():
            await load.goes_on()
            await eventually(audit.count, within=PLENTY)
            await FATES[fate](nats_url, audit.topology)
            await eventually(audit.count, within=PLENTY)
        await forget_soon(nats_url, audit.topology)  # whoever still made the streams at its start made this 2 min again
        told = await audit.has_all_of(shop.db)

    assert out_of_order(told) == []


async def delete(nats_url: str, topology: Topology) -> None:
    async with jetstream(nats_url) as js:
        await js.delete_stream(topology.audit_stream.name)


async def make_anew(nats_url: str, topology: Topology) -> None:
    await delete(nats_url, topology)
    await ensure_streams(nats_url, topology)


async def empty(nats_url: str, topology: Topology) -> None:
    """It goes on refusing the ids it has seen, here for a second only."""
    await forget_soon(nats_url, topology)
    async with jetstream(nats_url) as js:
        await js.purge_stream(topology.audit_stream.name)


async def forget_soon(nats_url: str, topology: Topology) -> None:
    async with jetstream(nats_url) as js:
        config = (await js.stream_info(topology.audit_stream.name)).config
        await js.update_stream(config.evolve(duplicate_window=1))


FATES = {"deleted": delete, "made anew": make_anew, "emptied": empty}


async def test_a_relay_that_starts_without_nats_catches_up(quiet_database, shop, own_nats, nats_namespace):
    audit = Audit(own_nats.url, nats_namespace)
    await own_nats.stop()
    await shop.enqueue()

    async with running_relay(quiet_database.url, own_nats.url, nats_namespace):
        await shop.enqueue()
        await own_nats.start()
        await audit.has_all_of(shop.db)


async def test_an_old_writer_holds_back_and_hides_nothing(quiet_database, shop, nats_url, nats_namespace):
    """Others go on committing meanwhile; their events wait for its end, and then all come in order."""
    audit, load = Audit(nats_url, nats_namespace), Load(shop)
    writer, elsewhere = await quiet_database.connect(), await Tenant.create(shop.db)
    await elsewhere.channels(1)

    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        async with load.running():
            await load.goes_on()
            held = writer.transaction()
            await held.start()
            await elsewhere.on(writer).enqueue()
            await load.goes_on(1000)
            waiting: Any = await shop.db.fetchrow("SELECT * FROM relay_lag('0')")
            await held.commit()
            await load.goes_on()
        told = await audit.has_all_of(shop.db)

    assert waiting["events"] >= 900
    assert waiting["blocking_pid"] == writer.get_server_pid()
    assert out_of_order(told) == []
