"""The embedded NATS: JetStream answers, and what it stored survives a stop."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
from autopost_cli.embedded.nats import NatsServer
from nats.js import JetStreamContext


@asynccontextmanager
async def jetstream(url: str) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(url, allow_reconnect=False)
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def test_streams_of_the_shared_server_are_kept_apart_by_name(nats_url: str, nats_namespace: str) -> None:
    async with jetstream(nats_url) as stream:
        await stream.add_stream(name=nats_namespace, subjects=[f"{nats_namespace}.>"])
        ack = await stream.publish(f"{nats_namespace}.hello", b"world")

    assert (ack.stream, ack.seq) == (nats_namespace, 1)


async def test_a_stopped_server_comes_back_on_its_port_with_its_messages(own_nats: NatsServer) -> None:
    url = own_nats.url
    async with jetstream(url) as stream:
        await stream.add_stream(name="KEPT", subjects=["kept"])
        await stream.publish("kept", b"1")

    await own_nats.stop()
    assert not await own_nats.answers()
    await own_nats.start()

    assert own_nats.url == url
    async with jetstream(url) as stream:
        assert (await stream.stream_info("KEPT")).state.messages == 1


async def test_a_killed_server_can_be_started_again(own_nats: NatsServer) -> None:
    assert own_nats.process
    own_nats.process.send(signal.SIGKILL)
    await own_nats.process.exited()

    await own_nats.start()

    assert await own_nats.answers()
