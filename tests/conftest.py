"""Fixtures for every test: backends of the run, a database of the test, servers of its own."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from autopost_cli.embedded.folders import scratch
from autopost_cli.embedded.nats import NatsServer
from autopost_cli.embedded.postgres import FAST, PostgresServer
from harness import slow, time_limit
from harness.backends import SURVIVES_A_KILL, scratch_root
from harness.buckets import Bucket
from harness.databases import EMPTY, MIGRATED, Database, cloned, make_migrated
from harness.shared_backends import Owner, ask, ask_bucket
from harness.time_limit import pytest_runtest_protocol as pytest_runtest_protocol
from hypothesis import HealthCheck, settings

settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # no example is judged by how long it takes

OWNER = pytest.StashKey[Owner]()
ADDRESS = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: a test waits for a quarter of its time."""
    return (os.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    time_limit.pytest_configure(config)
    slow.pytest_configure(config)
    if hasattr(config, "workerinput"):
        config.stash[ADDRESS] = config.workerinput["backends"]
        return
    config.stash[OWNER] = owner = Owner()
    config.stash[ADDRESS] = owner.address


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First, so that ``-m`` sees the marks."""
    slow.mark(items)
    slow.longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["backends"] = node.config.stash[ADDRESS]


def pytest_unconfigure(config: pytest.Config) -> None:
    if owner := config.stash.get(OWNER, None):
        owner.stop()


Ask = Callable[[str], Any]


@pytest.fixture(scope="session")
def ask_owner(pytestconfig: pytest.Config) -> Ask:
    return lambda question: ask(pytestconfig.stash[ADDRESS], question)


@pytest.fixture(scope="session")
def postgres_url(ask_owner: Ask) -> str:
    """The shared server, as superuser, in the database ``postgres``."""
    return str(ask_owner("postgres"))


@pytest.fixture
async def empty_database(postgres_url: str) -> AsyncIterator[Database]:
    """Nothing in it: for what makes the schema."""
    async with cloned(postgres_url, EMPTY) as database:
        yield database


@pytest.fixture
async def database(postgres_url: str, ask_owner: Ask) -> AsyncIterator[Database]:
    """The whole schema, no rows but what the migrations put there."""
    async with cloned(postgres_url, ask_owner("migrated")) as database:
        yield database


@pytest.fixture
async def seeded_database(postgres_url: str, ask_owner: Ask) -> AsyncIterator[Database]:
    """The whole schema and the demo workspaces."""
    async with cloned(postgres_url, ask_owner("seeded")) as database:
        yield database


@pytest.fixture
async def own_cluster() -> AsyncIterator[PostgresServer]:
    """A Postgres of this test's own: for open transactions, xmin, restarts and kills."""
    with scratch("autopost-test-", scratch_root()) as folder:
        async with PostgresServer(folder / "postgres", settings=SURVIVES_A_KILL) as server:
            yield server


@pytest.fixture(scope="session")
def quiet_cluster() -> Iterator[str]:
    """A migrated Postgres of this worker's own, which has one test at a time: nobody else's transaction is open."""
    with scratch("autopost-test-", scratch_root()) as folder:
        server = PostgresServer(folder / "postgres", settings=FAST)
        asyncio.run(server.start())
        asyncio.run(make_migrated(server.url()))
        yield server.url()
        asyncio.run(server.stop())


@pytest.fixture
async def quiet_database(quiet_cluster: str) -> AsyncIterator[Database]:
    """The whole schema, where xmin is the test's own affair."""
    async with cloned(quiet_cluster, MIGRATED) as database:
        yield database


@pytest.fixture(scope="session")
def nats_url(ask_owner: Ask) -> str:
    """The shared server: name streams and subjects with ``nats_namespace``."""
    return str(ask_owner("nats"))


@pytest.fixture
def nats_namespace() -> str:
    """A token for stream names and subjects that no other test uses."""
    return f"t{uuid4().hex[:12]}"


@pytest.fixture
async def own_nats() -> AsyncIterator[NatsServer]:
    """A NATS of this test's own, which it may stop and start again."""
    with scratch("autopost-test-", scratch_root()) as folder:
        async with NatsServer(folder / "nats") as server:
            yield server


@pytest.fixture
def s3(pytestconfig: pytest.Config) -> Bucket:
    return ask_bucket(pytestconfig.stash[ADDRESS])
