"""A database that was dumped and restored into another cluster, where transaction ids start again."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from autopost_cli.embedded.cluster import account_for
from autopost_cli.embedded.places import postgres_programs
from autopost_cli.embedded.postgres import PostgresServer
from db.support.builders import Tenant
from monitor.support.running_relay import Audit, out_of_order, running_relay

pytestmark = pytest.mark.time_limit(480)


class Tools:
    """The client programs of the embedded Postgres."""

    def __init__(self, server: PostgresServer) -> None:
        self._programs = postgres_programs(18, account_for(server.data))

    async def run(self, program: str, *words: str) -> None:
        def once() -> "subprocess.CompletedProcess[str]":
            return subprocess.run([self._programs / program, *words], capture_output=True, text=True, check=False)

        ended = await asyncio.to_thread(once)
        assert ended.returncode == 0, ended.stderr


@pytest.fixture
async def restored(own_cluster: PostgresServer) -> AsyncIterator["asyncpg.Pool[asyncpg.Record]"]:
    """The cluster to move to, empty until then."""
    async with asyncpg.create_pool(own_cluster.url(), min_size=0, max_size=5) as pool:
        yield pool


async def move(source: str, target: PostgresServer, folder: Path) -> None:
    tools, dump = Tools(target), str(folder / "dump")
    admin = await asyncpg.connect(target.url())
    roles = ["ingest", "dispatcher", "monitor", "bot", "operator", "reader", "payloads"]
    await admin.execute("".join(f"CREATE ROLE autopost_{role} NOLOGIN; " for role in roles))
    await admin.close()
    await tools.run("pg_dump", "--format=custom", f"--file={dump}", source)
    await tools.run("pg_restore", "--exit-on-error", f"--dbname={target.url()}", dump)


@pytest.mark.parametrize("spent", [0, 20_000], ids=["like those of the new one", "far ahead"])
async def test_after_a_restore_every_event_is_relayed_old_and_new(
    quiet_database, restored, own_cluster, tmp_path, nats_url, nats_namespace, spent
):
    """Some were relayed before the dump, some were not, some were written before the relay was there again."""
    audit = Audit(nats_url, nats_namespace)
    await spend_xids(quiet_database.pool, spent)
    old = await Tenant.create(quiet_database.pool)
    await old.channels(3)
    for _ in range(3):
        await old.enqueue()
    async with running_relay(quiet_database.url, nats_url, nats_namespace):
        await audit.has_all_of(old.db)
    relayed = {event.id for event in await audit.events()}
    await old.enqueue()
    await old.drain()
    await quiet_database.pool.execute("UPDATE leader_leases SET holder = NULL, lease_until = NULL")

    await move(quiet_database.url, own_cluster, tmp_path)
    new = Tenant(restored, UUID(str(old.workspace)))
    await new.enqueue()
    await new.drain()
    async with running_relay(own_cluster.url(), nats_url, nats_namespace):
        await new.enqueue()
        told = await audit.has_all_of(restored)

    former, present = await identifier(quiet_database.pool), await identifier(restored)
    assert former != present
    assert await restored.fetchval("SELECT system_identifier FROM relay_state") == present
    assert relayed < {event.id for event in told}
    assert len(told) == len({event.id for event in told})
    assert out_of_order(told) == []


async def spend_xids(pool: "asyncpg.Pool[asyncpg.Record]", count: int) -> None:
    loop = "LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP"
    await pool.execute(f"DO $$ BEGIN FOR i IN 1 .. {count} {loop}; END $$")


async def identifier(pool: "asyncpg.Pool[asyncpg.Record]") -> int:
    found: int = await pool.fetchval("SELECT system_identifier FROM pg_control_system()")
    return found
