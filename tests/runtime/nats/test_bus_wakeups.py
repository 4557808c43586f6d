"""Wakeups through a real NATS that is away, stopped, wiped: only latency depends on it."""

import asyncio
from uuid import uuid4

import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import (
    NotPublished,
    ensure_streams,
)
from harness.eventually import eventually
from runtime.support.wakeup_listener import SOON, heard_again, listening


async def test_a_wakeup_is_heard(bus, topology, wakeup):
    async with listening(bus, topology.dispatcher_wakeups) as heard:
        bus.wake(wakeup)

        await eventually(lambda: heard == [wakeup])


async def test_many_wakeups_of_one_workspace_collapse_to_one(bus, topology, wakeup, js):
    for _ in range(50):
        await js.publish(wakeup)

    async with listening(bus, topology.dispatcher_wakeups) as heard:
        await eventually(lambda: heard)
        bus.wake(last := topology.wakeup_dispatch(WorkspaceId(uuid4())))
        await eventually(lambda: last in heard)

    assert heard == [wakeup, last]


async def test_a_wakeup_is_sent_again_as_soon_as_the_last_was_heard(bus, topology, wakeup):
    async with listening(bus, topology.dispatcher_wakeups) as heard:
        for count in range(1, 6):
            bus.wake(wakeup)
            await eventually(lambda count=count: len(heard) == count)


async def test_a_wakeup_goes_only_to_those_it_is_for(bus, topology, wakeup):
    bot = topology.wakeup_bot(WorkspaceId(uuid4()))
    async with listening(bus, topology.dispatcher_wakeups) as dispatch, listening(bus, topology.bot_wakeups) as chats:
        bus.wake(wakeup)
        bus.wake(bot)

        await eventually(lambda: dispatch == [wakeup] and chats == [bot])


async def test_readiness_can_tell_that_a_consumer_is_bound(bus, topology):
    assert not bus.bound(topology.dispatcher_wakeups)

    async with listening(bus, topology.dispatcher_wakeups):
        await eventually(lambda: bus.bound(topology.dispatcher_wakeups))
        assert not bus.bound(topology.bot_wakeups)


async def test_without_an_address_everything_is_quiet(open_, topology, wakeup):
    async with open_(None) as bus, listening(bus, topology.dispatcher_wakeups) as heard:
        bus.wake(wakeup)
        with pytest.raises(NotPublished):
            await bus.publish("x", b"", msg_id="1")

        assert (bus.connected, heard) == (False, [])


async def test_a_service_starts_while_nats_is_away_and_finds_it_later(own_nats, open_, topology, wakeup, measured):
    await own_nats.stop()

    async with open_(own_nats.url) as bus, listening(bus, topology.dispatcher_wakeups) as heard:
        bus.wake(wakeup)
        with pytest.raises(NotPublished):
            await bus.publish("x", b"", msg_id="1")
        assert not bus.connected

        await own_nats.start()
        await heard_again(bus, heard, wakeup)

    assert 'autopost_nats_wakeups_total{result="failed"}' in measured()


async def test_a_restart_of_nats_is_survived(own_nats, open_, topology, wakeup):
    await ensure_streams(own_nats.url, topology)

    async with open_(own_nats.url) as bus, listening(bus, topology.dispatcher_wakeups) as heard:
        await heard_again(bus, heard, wakeup)
        await own_nats.stop()
        await eventually(lambda: not bus.connected)
        bus.wake(wakeup)
        await own_nats.start()

        await heard_again(bus, heard, wakeup)


async def test_leaving_while_nats_is_away_neither_raises_nor_hangs(own_nats, open_, topology):
    async with asyncio.timeout(30):
        async with open_(own_nats.url) as bus:
            listener = asyncio.create_task(bus.wakeups(topology.dispatcher_wakeups, lambda _: None))
            await eventually(lambda: bus.connected)
            await own_nats.stop()
            await eventually(lambda: not bus.connected)
        await listener


async def test_leaving_with_a_fetch_pending_is_prompt(bus, open_, topology, nats_url, monkeypatch):
    """Who waited for the fetch, or for the time that a handler has, would be gone only after a minute."""
    monkeypatch.setattr("autopost_runtime.nats.pull_consumer.FETCH_LIMIT", 60.0)
    monkeypatch.setattr("autopost_runtime.nats.bus.HANDLERS_LIMIT", 60.0)
    loop = asyncio.get_running_loop()
    async with open_(nats_url) as leaving:
        listener = asyncio.create_task(leaving.wakeups(topology.dispatcher_wakeups, lambda _: None))
        await eventually(lambda: leaving.bound(topology.dispatcher_wakeups))
        started = loop.time()
    await listener

    assert loop.time() - started < 20


async def test_a_deleted_stream_is_made_again(bus, js, topology, wakeup):
    async with listening(bus, topology.dispatcher_wakeups) as heard:
        await heard_again(bus, heard, wakeup)

        await js.delete_stream(topology.stream("WAKEUPS"))
        await eventually(lambda: not bus.bound(topology.dispatcher_wakeups), within=SOON)

        await heard_again(bus, heard, wakeup)


async def test_a_consumer_deleted_during_a_fetch_is_made_again(bus, js, topology, wakeup):
    async with listening(bus, topology.dispatcher_wakeups) as heard:
        await heard_again(bus, heard, wakeup)

        await js.delete_consumer(topology.stream("WAKEUPS"), "dispatcher")
        await eventually(lambda: not bus.bound(topology.dispatcher_wakeups), within=SOON)

        await eventually(lambda: bus.bound(topology.dispatcher_wakeups), within=SOON)
        await heard_again(bus, heard, wakeup)


async def test_a_wiped_server_does_not_make_the_loop_spin(bus, js, topology):
    before = bus._connection.client.stats["out_msgs"]
    async with listening(bus, topology.dispatcher_wakeups):
        for stream in topology.streams:
            await js.delete_stream(stream.name)
        await eventually(lambda: bus.bound(topology.dispatcher_wakeups), within=SOON)

    assert bus._connection.client.stats["out_msgs"] - before < 100


async def test_a_connection_that_is_closed_for_good_ends_the_service(nats_url, open_):
    service = Service("test")

    async with open_(nats_url, service) as bus:
        await eventually(lambda: bus.connected)
        await bus._connection.client.close()

        await asyncio.wait_for(service.stopping.wait(), 5)
    assert service.exit_code == 1
