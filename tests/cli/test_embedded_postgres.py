"""The embedded Postgres: starts for everyone, keeps its data, leaves nothing behind."""

from harness.databases import Database


async def test_a_clone(empty_database: Database) -> None:
    assert await empty_database.pool.fetchval("select 1") == 1
    c = await empty_database.connect()
    assert await c.fetchval("select 1") == 1


async def test_b(nats_url: str, s3) -> None:
    assert nats_url


async def test_c(own_cluster, own_nats) -> None:
    pass
