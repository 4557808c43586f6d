"""A config, a bus and a look at NATS for the runtime's own tests; each test adds what it is about."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from uuid import uuid4

import nats
import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.lifecycle.service import Service
from autopost_runtime.nats.bus import Bus, ensure_streams, open_bus
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry import tracing as telemetry
from harness.eventually import eventually
from nats.js import JetStreamContext

Open = Callable[..., contextlib.AbstractAsyncContextManager[Bus]]


@pytest.fixture
def configure() -> Callable[..., ServiceConfig]:
    def make(**fields: Any) -> ServiceConfig:
        return ServiceConfig(**{"database_url": "postgresql://nobody@127.0.0.1:1/none", **fields})

    return make


@pytest.fixture
def traced(configure: Callable[..., ServiceConfig]) -> Iterator[None]:
    telemetry.setup("test", configure())
    yield
    telemetry.shutdown()


@pytest.fixture
def measured() -> Callable[[], str]:
    """Call it to read the metrics of this test."""
    metrics.forget()
    return lambda: metrics.render().decode()


@pytest.fixture
def topology(nats_namespace: str) -> Topology:
    return Topology(nats_namespace)


@pytest.fixture
def open_(configure: Callable[..., ServiceConfig], topology: Topology) -> Open:
    def opened(url: str | None, service: Service | str = "test") -> contextlib.AbstractAsyncContextManager[Bus]:
        return open_bus(configure(nats_url=url, nats_namespace=topology.namespace), service)

    return opened


@pytest.fixture
async def bus(nats_url: str, topology: Topology, open_: Open) -> AsyncIterator[Bus]:
    await ensure_streams(nats_url, topology)
    async with open_(nats_url) as opened:
        await eventually(lambda: opened.connected)
        yield opened


@pytest.fixture
async def js(nats_url: str) -> AsyncIterator[JetStreamContext]:
    """The test's own look at the server."""
    client = await nats.connect(nats_url)
    yield client.jetstream()
    await client.close()


@pytest.fixture
def wakeup(topology: Topology) -> str:
    return topology.wakeup_dispatch(WorkspaceId(uuid4()))
