"""What has to be there before the services start: the schema, the demo rows, the streams."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg

from autopost_cli.embedded.processes import BackendError

Prepare = Callable[[str], Awaitable[None]]
PATIENCE = timedelta(seconds=30)
NOT_YET = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError)


async def prepare_database(database_url: str) -> None:
    """Migrated and seeded; doing it again changes nothing."""
    from autopost_cli.migrate import migrate_up  # here, not above: other commands of ours need not load it
    from autopost_cli.seed import seed

    await migrate_up(database_url)
    await seed(database_url)


async def create_database(server_url: str, name: str) -> None:
    connection = await asyncpg.connect(server_url)
    try:
        if not await connection.fetchval("SELECT TRUE FROM pg_database WHERE datname = $1", name):
            await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()


async def await_database(database_url: str) -> None:
    """For a server of the user's own, which may still be starting."""
    deadline = asyncio.get_running_loop().time() + PATIENCE.total_seconds()
    while True:
        try:
            connection = await asyncpg.connect(database_url, timeout=5)
            await connection.close()
        except NOT_YET as error:
            if asyncio.get_running_loop().time() > deadline:
                raise BackendError(f"AUTOPOST_DATABASE_URL: no answer from the server ({error})") from error
            await asyncio.sleep(0.2)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise BackendError(f"AUTOPOST_DATABASE_URL: {error}") from error
        else:
            return


async def prepare_streams(nats_url: str, namespace: str) -> None:
    await asyncio.to_thread(importlib.import_module, "autopost_runtime.streams")  # a second's work, beside other starts
    from autopost_contracts.subjects import Topology
    from autopost_runtime.streams import BusUnavailable, ensure_streams

    try:
        await ensure_streams(nats_url, Topology(namespace))
    except BusUnavailable as error:
        raise BackendError(f"NATS at {nats_url}: {error}") from error
