"""Events out: stored once, with their trace, and never believed to be stored."""

from datetime import timedelta

import nats
import pytest
from autopost_runtime.nats.bus import (
    NotPublished,
    PublishUnknown,
)
from autopost_runtime.telemetry import tracing as telemetry


async def test_publishing_twice_with_one_id_stores_once(bus, js, topology):
    subject = topology.subject("audit.ws.sent")

    first = await bus.publish(subject, b"{}", msg_id="event-1", headers={"Autopost-Schema": "audit.v1"})
    second = await bus.publish(subject, b"{}", msg_id="event-1")

    assert (first, second) == (True, False)
    assert (await js.stream_info(topology.stream("AUDIT"))).state.messages == 1
    stored = await js.get_last_msg(topology.stream("AUDIT"), subject)
    assert stored.headers == {"Nats-Msg-Id": "event-1", "Autopost-Schema": "audit.v1"}


async def test_a_published_event_carries_its_trace(bus, js, topology, traced):
    subject = topology.subject("audit.ws.sent")

    with telemetry.tracer().start_as_current_span("relay"):
        traceparent = telemetry.current_traceparent()
        await bus.publish(subject, b"{}", msg_id="event-1")

    stored = await js.get_last_msg(topology.stream("AUDIT"), subject)
    assert stored.headers["traceparent"] == traceparent


async def test_an_event_for_a_stream_that_is_gone_is_certainly_not_published_and_the_stream_returns(bus, js, topology):
    await js.delete_stream(topology.stream("AUDIT"))

    with pytest.raises(NotPublished):
        await bus.publish(topology.subject("audit.ws.sent"), b"{}", msg_id="event-1")

    assert await bus.publish(topology.subject("audit.ws.sent"), b"{}", msg_id="event-1")


async def test_an_answer_that_does_not_come_is_unknown(bus, nats_url, nats_namespace):
    listener = await nats.connect(nats_url)
    await listener.subscribe(f"{nats_namespace}.silent")  # somebody hears, nobody answers
    await listener.flush()

    try:
        with pytest.raises(PublishUnknown):
            await bus.publish(f"{nats_namespace}.silent", b"{}", msg_id="1", timeout=timedelta(milliseconds=100))
    finally:
        await listener.close()
