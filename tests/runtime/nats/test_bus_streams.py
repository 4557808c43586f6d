"""Streams and consumers: made once, repaired, and never quietly different; roles and what they may."""

from datetime import timedelta

import nats
import pytest
from autopost_cli.embedded.nats import NatsServer
from autopost_cli.embedded.places import program
from autopost_cli.embedded.processes import Process
from autopost_runtime.nats.bus import (
    BusUnavailable,
    ensure_streams,
)
from harness.eventually import eventually
from runtime.support.wakeup_listener import heard_again, listening
from structlog.testing import capture_logs


async def test_ensuring_twice_changes_nothing_and_keeps_what_an_operator_added(nats_url, topology, js):
    assert await ensure_streams(nats_url, topology) == ()
    name = topology.stream("AUDIT")
    config = (await js.stream_info(name)).config
    await js.update_stream(config.evolve(description="kept", max_age=600.0))

    assert await ensure_streams(nats_url, topology) == ()

    after = (await js.stream_info(name)).config
    assert (after.description, after.max_age) == ("kept", timedelta(days=30).total_seconds())


async def test_what_cannot_be_changed_is_reported_as_drift(nats_url, topology, js, measured):
    name = topology.stream("AUDIT")
    await js.add_stream(name=name, subjects=[topology.subject("audit.>")], storage="memory")

    with capture_logs() as logged:
        drifts = await ensure_streams(nats_url, topology)

    assert [(drift.thing, drift.field, drift.wanted, drift.found) for drift in drifts if drift.field == "storage"] == [
        (f"stream {name}", "storage", "file", "memory")
    ]
    assert "nats.drift" in [line["event"] for line in logged]
    assert "autopost_nats_drift_total" in measured()


async def test_a_wakeup_consumer_of_another_make_is_replaced(nats_url, topology, js):
    await ensure_streams(nats_url, topology)
    spec = topology.dispatcher_wakeups
    await js.delete_consumer(spec.stream, spec.durable)
    await js.add_consumer(spec.stream, durable_name=spec.durable, ack_policy="explicit")

    assert await ensure_streams(nats_url, topology) == ()

    assert (await js.consumer_info(spec.stream, spec.durable)).config.ack_policy == "none"


async def test_ensuring_waits_only_so_long_for_a_server_that_is_away(topology, unused_tcp_port):
    with pytest.raises(BusUnavailable):
        await ensure_streams(f"nats://127.0.0.1:{unused_tcp_port}", topology, timedelta(milliseconds=300))


FORBIDDEN = """
listen: "127.0.0.1:%d"
jetstream { store_dir: "%s" }
authorization { users: [
  { user: owner, password: owner }
  { user: service, password: service, permissions: {
      publish: ["$JS.API.CONSUMER.MSG.NEXT.>", "$JS.ACK.>"], subscribe: ["_INBOX_test.>"] } }
] }
"""


class StrictNats(NatsServer):
    """Two users: one may do everything, the other only what a dispatcher needs."""

    async def _spawn(self) -> Process:
        self.data.mkdir(parents=True, exist_ok=True)
        config = self.data / "server.conf"
        config.write_text(FORBIDDEN % (self.port, self.data))
        return Process.start(self.name, [program("nats-server"), "-c", str(config)], log=self.log)

    async def answers(self) -> bool:
        try:
            client = await nats.connect(self.as_user("owner"), allow_reconnect=False, connect_timeout=1)
            await client.jetstream().account_info()
            await client.close()
        except (OSError, nats.errors.Error):
            return False
        return True

    def as_user(self, name: str) -> str:
        return f"nats://{name}:{name}@127.0.0.1:{self.port}"


async def test_a_denied_publish_is_an_alarm_and_not_a_silence(tmp_path, open_, topology, wakeup, measured):
    async with StrictNats(tmp_path / "nats") as server:
        await ensure_streams(server.as_user("owner"), topology)
        with capture_logs() as logged:
            async with open_(server.as_user("service")) as bus:
                await eventually(lambda: bus.connected)
                bus.wake(wakeup)

                await eventually(lambda: "nats.permission_violation" in [line["event"] for line in logged])

    assert "autopost_nats_permission_violations_total 1.0" in measured()
    assert [line["log_level"] for line in logged if "violation" in line["event"]] == ["critical"]


async def test_the_least_permissions_suffice_to_hear_wakeups(tmp_path, open_, topology, wakeup):
    async with StrictNats(tmp_path / "nats") as server:
        await ensure_streams(server.as_user("owner"), topology)
        async with (
            open_(server.as_user("owner")) as speaker,
            open_(server.as_user("service")) as bus,
            listening(bus, topology.dispatcher_wakeups) as heard,
        ):
            await heard_again(speaker, heard, wakeup)
