"""Ready means that the database can write, not only that it answers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from autopost_cli.embedded.postgres import PostgresServer
from autopost_cli.schema.migrate import migrate_up
from harness.eventually import eventually
from runtime.postgres.test_schema import Running, running

MINUTE = timedelta(minutes=1)
Act = Callable[[PostgresServer], Awaitable[None]]


@pytest.fixture
async def cluster(own_cluster: PostgresServer) -> PostgresServer:
    await migrate_up(own_cluster.url())
    return own_cluster


@pytest.fixture
async def bot(cluster: PostgresServer, tmp_path: Path) -> AsyncIterator[Running]:
    async with running("bot", cluster.url(), tmp_path) as process:
        await eventually(lambda: is_ready(process), within=MINUTE)
        yield process


async def is_ready(process: Running) -> bool:
    return set((await process.checks()).values()) == {"ok"}


async def is_not_ready(process: Running) -> bool:
    return (await process.checks()).get("database", "ok") != "ok"


async def set_read_only(cluster: PostgresServer, value: str) -> None:
    """As a provider does when the disk is nearly full: for sessions that are open too."""
    admin = await asyncpg.connect(cluster.url())
    await admin.execute("SET default_transaction_read_only = off")
    await admin.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    await admin.execute("SELECT pg_reload_conf()")
    await admin.close()


async def test_a_database_that_is_set_to_read_only_makes_a_service_unready_until_it_writes_again(
    cluster: PostgresServer, bot: Running
) -> None:
    await set_read_only(cluster, "on")
    await eventually(lambda: is_not_ready(bot), within=MINUTE)

    await set_read_only(cluster, "off")

    await eventually(lambda: is_ready(bot), within=MINUTE)


async def test_a_disk_that_takes_nothing_makes_a_service_unready(cluster: PostgresServer, bot: Running) -> None:
    """Whatever the reason: this one takes no temporary files."""
    folder = cluster.data / "base" / "pgsql_tmp"

    async def cannot_be_written() -> bool:
        folder.chmod(0)
        return await is_not_ready(bot)

    await eventually(cannot_be_written, within=MINUTE)
    folder.chmod(0o700)

    await eventually(lambda: is_ready(bot), within=MINUTE)


async def test_a_standby_is_told_apart_from_a_primary(cluster: PostgresServer) -> None:
    await cluster.stop()
    (cluster.data / "standby.signal").touch()
    await cluster.start()
    session = await asyncpg.connect(cluster.url())

    with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
        await session.execute("SELECT check_writes()")

    await session.close()


async def test_asking_leaves_no_row_behind(cluster: PostgresServer) -> None:
    session = await asyncpg.connect(cluster.url())
    files = "SELECT temp_files FROM pg_stat_database WHERE datname = current_database()"
    before = await session.fetchval(files)

    for _ in range(3):
        await session.execute("SELECT check_writes()")
    await session.execute("SELECT pg_stat_force_next_flush()")

    assert await session.fetchval(files) == before + 3
    await session.close()
