"""Messages in: settled once, by the handler's verdict, after its work."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from autopost_contracts.subjects import ConsumerSpec, Topology
from autopost_runtime.nats.bus import (
    Bus,
    Done,
    Later,
    Message,
    Poison,
)
from autopost_runtime.nats.streams import ensure_consumer
from autopost_runtime.telemetry import tracing as telemetry
from harness.eventually import eventually
from nats.js import JetStreamContext


@pytest.fixture
def commands(topology: Topology) -> ConsumerSpec:
    return ConsumerSpec(
        stream=topology.stream("COMMANDS"),
        durable="ingest",
        filter_subject=topology.commands,
        acks=True,
        ack_wait=timedelta(seconds=30),
    )


@pytest.fixture
def consume(bus: Bus, js: JetStreamContext, commands: ConsumerSpec) -> Callable[..., Awaitable[asyncio.Task[None]]]:
    async def start(handle: Callable[[Message], Awaitable[Done | Later | Poison]]) -> asyncio.Task[None]:
        await ensure_consumer(js, commands)
        return asyncio.create_task(bus.consume(commands, handle))

    return start


async def test_a_message_is_acked_only_after_its_handler_is_done(bus, js, consume, commands, topology):
    entered, leave = asyncio.Event(), asyncio.Event()

    async def handle(message: Message) -> Done:
        entered.set()
        await leave.wait()
        return Done()

    await consume(handle)
    await bus.publish(topology.commands, b"{}", msg_id="publish:1:1")
    await entered.wait()
    during = await js.consumer_info(commands.stream, commands.durable)
    leave.set()

    async def acked() -> bool:
        info = await js.consumer_info(commands.stream, commands.durable)
        return info.num_ack_pending == 0 and info.ack_floor.stream_seq == 1

    await eventually(acked)
    assert during.num_ack_pending == 1


@pytest.mark.parametrize("trouble", ["later", "raise"])
async def test_a_message_put_off_comes_again(bus, consume, topology, trouble, monkeypatch):
    seen: list[int] = []

    async def handle(message: Message) -> Done | Later:
        seen.append(message.delivered)
        if len(seen) > 1:
            return Done()
        if trouble == "raise":
            raise ValueError("surprise")
        return Later(timedelta(milliseconds=10))

    monkeypatch.setattr("autopost_runtime.nats.pull_consumer.LONGEST_DELAY", timedelta(milliseconds=10))
    await consume(handle)
    await bus.publish(topology.commands, b"{}", msg_id="publish:1:1")

    await eventually(lambda: seen == [1, 2])


async def test_a_poisonous_message_does_not_come_again(bus, js, consume, commands, topology):
    seen: list[bytes] = []

    async def handle(message: Message) -> Done | Poison:
        seen.append(message.payload)
        return Poison("not a command") if message.payload == b"?" else Done()

    await consume(handle)
    await bus.publish(topology.commands, b"?", msg_id="1")
    await bus.publish(topology.commands, b"{}", msg_id="2")

    async def settled() -> bool:
        info = await js.consumer_info(commands.stream, commands.durable)
        return info.num_ack_pending == 0 and info.ack_floor.stream_seq == 2

    await eventually(settled)
    assert seen == [b"?", b"{}"]


async def test_a_handler_goes_on_with_the_trace_of_the_publisher(bus, consume, topology, traced):
    traces: list[str | None] = []

    async def handle(_: Message) -> Done:
        traces.append(telemetry.trace_id_of(telemetry.current_traceparent()))
        return Done()

    await consume(handle)
    with telemetry.tracer().start_as_current_span("schedule"):
        expected = telemetry.trace_id_of(telemetry.current_traceparent())
        await bus.publish(topology.commands, b"{}", msg_id="1")

    await eventually(lambda: traces == [expected])


async def test_leaving_waits_for_the_handler_at_work(js, open_, nats_url, bus, commands, topology):
    entered, ended = asyncio.Event(), asyncio.Event()

    async def handle(_: Message) -> Done:
        entered.set()
        await leaving._closing.wait()
        ended.set()
        return Done()

    await ensure_consumer(js, commands)
    await bus.publish(topology.commands, b"{}", msg_id="1")
    async with open_(nats_url) as leaving:
        consuming = asyncio.create_task(leaving.consume(commands, handle))
        await entered.wait()
    await consuming

    assert ended.is_set()
    assert (await js.consumer_info(commands.stream, commands.durable)).num_ack_pending == 0
