"""The oldest server we can carry along: the same schema, the same round of a post."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from autopost_cli.embedded.folders import scratch
from autopost_cli.embedded.postgres import PostgresServer
from autopost_cli.schema.migrations import migrate_status, migrate_up
from autopost_cli.schema.seed import seed
from db.support.builders import Tenant, sent, transient
from db.support.consistency import consistent
from harness.backends import SURVIVES_A_KILL, scratch_root


@pytest.fixture
async def older_server() -> AsyncIterator[PostgresServer]:
    with scratch("autopost-test-", scratch_root()) as folder:
        async with PostgresServer(folder / "postgres", settings=SURVIVES_A_KILL, major=16) as server:
            yield server


async def test_a_post_makes_its_round_on_postgresql_16(older_server):
    await migrate_up(older_server.url())
    await seed(older_server.url())
    connection = await asyncpg.connect(older_server.url())
    demo = await connection.fetchval("SELECT workspace_id FROM workspaces WHERE name = 'demo'")
    tenant = Tenant(connection, demo)

    answer = await tenant.enqueue("hello", tags=["demo"])
    first, *others = await tenant.claim()
    await tenant.commit(transient(first, retry_after_ms=0), *(sent(claim) for claim in others), jitter=0)

    assert await connection.fetchval("SHOW server_version_num") < "170000"
    assert (await migrate_status(older_server.url())).clean
    assert answer["enqueued"] == 40
    assert {row["status"] for row in await tenant.deliveries()} == {"queued", "sent", "retry"}
    assert await consistent(connection, demo)
    await connection.close()
