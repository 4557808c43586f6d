"""Run a relay with a real Postgres and NATS, and read its stream."""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import nats
from autopost_contracts.events import AuditEvent
from autopost_contracts.subjects import Topology
from autopost_monitor.config import MonitorConfig
from autopost_monitor.gateway import Gateway
from autopost_monitor.leader.leader import Leadership
from autopost_monitor.leader.periodic import Scheduler
from autopost_monitor.relay.gateway import RelayGateway
from autopost_monitor.relay.relay import Relay
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import open_database
from harness.eventually import eventually
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig

IDLE = timedelta(milliseconds=50)


@contextlib.asynccontextmanager
async def running_relay(
    database_url: str, nats_url: str, namespace: str, gateway_of: type[RelayGateway] = RelayGateway
) -> AsyncIterator[Service]:
    """A replica that only relays, wired as the service wires itself."""
    config = MonitorConfig(database_url=database_url, nats_url=nats_url, nats_namespace=namespace, relay_interval=IDLE)
    service = Service("monitor")
    async with open_database(config, service) as database, open_bus(config, service) as bus:
        leadership = Leadership(Gateway(database), uuid4())
        scheduler = Scheduler(service, leadership)
        publisher = bus.ordered_publisher(bus.topology.audit_stream.name)
        relay = Relay(gateway_of(database, leadership.holder), publisher, bus.topology, service, IDLE)
        scheduler.on_leader("relay", IDLE, relay.run_once)
        yield service
        service.stop()
        await scheduler.finish()
    assert service.exit_code == 0


class Audit:
    """The stream as anybody may read it."""

    def __init__(self, nats_url: str, namespace: str) -> None:
        self.topology = Topology(namespace)
        self._url = nats_url

    async def count(self) -> int:
        """0 also while there is no server or no stream."""
        with contextlib.suppress(Error, OSError):
            async with self._jetstream() as js:
                return int((await js.stream_info(self.topology.audit_stream.name)).state.messages)
        return 0

    async def messages(self) -> list[Any]:
        """All of them in their order."""
        config = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=30)
        async with self._jetstream() as js:
            subscription = await js.pull_subscribe(
                self.topology.audit(None, None), stream=self.topology.audit_stream.name, config=config
            )
            left = (await subscription.consumer_info()).num_pending or 0
            found: list[Any] = []
            while len(found) < left:
                found += await subscription.fetch(min(500, left - len(found)), timeout=10)
            return found

    @contextlib.asynccontextmanager
    async def _jetstream(self) -> AsyncIterator[JetStreamContext]:
        async with await nats.connect(self._url, connect_timeout=5, allow_reconnect=False) as client:
            yield client.jetstream(timeout=5)

    async def events(self) -> list[AuditEvent]:
        return [msgspec.json.decode(message.data, type=AuditEvent) for message in await self.messages()]

    async def has_all_of(self, pool: Any, within: timedelta = timedelta(minutes=1)) -> list[AuditEvent]:
        """What the stream holds, once that is every event of the table and none that is not."""

        async def same() -> list[AuditEvent] | None:
            if await self.count() < len(await ids(pool)):
                return None
            told = await self.events()
            return told if {event.id for event in told} == await ids(pool) else None

        return await eventually(same, within=within)


async def ids(pool: "asyncpg.Pool[Any]") -> set[UUID]:
    return {row["id"] for row in await pool.fetch("SELECT id FROM events")}


def out_of_order(told: list[AuditEvent]) -> list[object]:
    """Deliveries whose events first appear in another order than that in which they were written."""
    seen: dict[UUID, None] = {}
    by_delivery: dict[object, list[int]] = {}
    for event in told:
        if event.id not in seen:
            seen[event.id] = None
            by_delivery.setdefault(event.delivery_id, []).append(event.seq)
    return [delivery for delivery, order in by_delivery.items() if delivery and order != sorted(order)]


async def outlive_the_lease(pool: Any) -> None:
    """Of a relay that is dead: what ten seconds do, without them."""
    await pool.execute("UPDATE leader_leases SET lease_until = clock_timestamp() - interval '1 second'")
