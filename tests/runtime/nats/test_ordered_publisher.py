"""The ordered publisher: many messages at once into one stream, none of them before the one it follows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import nats
import pytest
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.connection import NatsConnection
from autopost_runtime.nats.ordered_publisher import NotPublished, OrderedPublisher, PublishUnknown, StreamMessage
from autopost_runtime.nats.streams import ensure_streams
from nats.js import JetStreamContext


@pytest.fixture
def topology(nats_namespace: str) -> Topology:
    return Topology(nats_namespace)


@asynccontextmanager
async def chained(url: str, topology: Topology) -> AsyncIterator[OrderedPublisher]:
    connection = NatsConnection(url, topology, "test", lambda: None)
    connection.start()
    await asyncio.wait_for(connection.up.wait(), 10)
    try:
        yield OrderedPublisher(connection, topology.audit_stream.name)
    finally:
        await connection.close()


@pytest.fixture
async def publisher(nats_url: str, topology: Topology) -> AsyncIterator[OrderedPublisher]:
    await ensure_streams(nats_url, topology)
    async with chained(nats_url, topology) as made:
        yield made


@pytest.fixture
async def js(nats_url: str) -> AsyncIterator[JetStreamContext]:
    async with await nats.connect(nats_url) as client:
        yield client.jetstream()


def messages(topology: Topology, count: int) -> list[StreamMessage]:
    subject = topology.subject("audit.here.sent")
    return [StreamMessage(subject, str(number).encode(), str(uuid4()), {"of": "test"}) for number in range(count)]


async def stored(js: JetStreamContext, topology: Topology) -> list[bytes]:
    name = topology.audit_stream.name
    state = (await js.stream_info(name)).state
    return [(await js.get_msg(name, state.last_seq - back)).data or b"" for back in reversed(range(state.messages))]


async def test_all_arrive_in_their_order(publisher, js, topology):
    await publisher.look()

    first = await publisher.publish(messages(topology, 300))
    second = await publisher.publish(messages(topology, 2))

    assert (first, second) == (300, 302)
    assert await stored(js, topology) == [str(number).encode() for number in [*range(300), 0, 1]]


async def test_what_is_there_already_is_kept_once_and_the_rest_follows_it(publisher, js, topology):
    batch = messages(topology, 10)
    await publisher.look()
    await publisher.publish(batch[:6])

    await publisher.look()
    await publisher.publish(batch)

    assert await stored(js, topology) == [str(number).encode() for number in range(10)]


async def test_nothing_is_stored_without_what_precedes_it(publisher, js, topology):
    """As when the first half was on the wire when the server died, and the second lands from a buffer."""
    batch = messages(topology, 6)
    await publisher.look()
    await publisher.publish(batch[:1])
    await js.publish(topology.subject("audit.here.sent"), b"another's")

    with pytest.raises(NotPublished):
        await publisher.publish(batch[1:])

    assert await stored(js, topology) == [b"0", b"another's"]


async def test_a_stream_that_was_made_anew_takes_nothing_before_it_was_looked_at(publisher, js, topology, nats_url):
    await publisher.look()
    await publisher.publish(messages(topology, 3))
    await js.delete_stream(topology.audit_stream.name)
    await ensure_streams(nats_url, topology)

    with pytest.raises(NotPublished):
        await publisher.publish(messages(topology, 1))

    assert not publisher.ready
    assert await stored(js, topology) == []
    assert (await publisher.look()).last_seq == 0
    await publisher.publish(messages(topology, 1))


async def test_a_stream_that_is_gone_is_made_again(publisher, js, topology):
    await publisher.look()
    await js.delete_stream(topology.audit_stream.name)

    with pytest.raises(NotPublished):
        await publisher.publish(messages(topology, 1))

    assert (await publisher.look()).messages == 0


async def test_an_emptied_stream_that_still_remembers_the_ids_has_not_taken_them(publisher, js, topology):
    batch = messages(topology, 3)
    await publisher.look()
    await publisher.publish(batch)
    await js.purge_stream(topology.audit_stream.name)

    await publisher.look()
    with pytest.raises(NotPublished, match="purged"):
        await publisher.publish(batch)


async def test_what_was_not_acknowledged_may_be_there(own_nats, topology):
    await ensure_streams(own_nats.url, topology)
    async with chained(own_nats.url, topology) as publisher:
        await publisher.look()
        await own_nats.stop()

        with pytest.raises((NotPublished, PublishUnknown)):
            await publisher.publish(messages(topology, 3))

        assert not publisher.ready
        with pytest.raises(NotPublished):
            await publisher.look()


async def test_a_stream_that_has_other_limits_tells_nothing_by_its_first_number(publisher, js, topology):
    assert (await publisher.look()).first_seq is not None
    config = (await js.stream_info(topology.audit_stream.name)).config
    await js.update_stream(config.evolve(max_bytes=1_000_000))

    assert (await publisher.look()).first_seq is None


async def test_what_is_cleared_is_what_was_there_up_to_a_number(publisher, js, topology):
    await publisher.look()
    last = await publisher.publish(messages(topology, 3))
    await publisher.publish(messages(topology, 2))

    await publisher.clear(last)

    assert not publisher.ready
    assert await stored(js, topology) == [b"0", b"1"]
