"""Prepare the database and the streams before the services start."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
from autopost_runtime.config.load import NatsAccess

from autopost_cli.embedded.processes import BackendError

Prepare = Callable[[str], Awaitable[None]]
PATIENCE = timedelta(seconds=30)
CONNECT_ERRORS = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError)


async def prepare_database(database_url: str) -> None:
    """Apply the schema and the seed; running it again changes nothing."""
    from autopost_cli.schema.migrate import migrate_up  # imported here, so that other commands need not load it
    from autopost_cli.schema.seed import seed

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
    """Wait for an external server, which may still be starting."""
    deadline = asyncio.get_running_loop().time() + PATIENCE.total_seconds()
    while True:
        try:
            connection = await asyncpg.connect(database_url, timeout=5)
            await connection.close()
        except CONNECT_ERRORS as error:
            if asyncio.get_running_loop().time() > deadline:
                raise BackendError(f"AUTOPOST_DATABASE_URL: the server does not answer ({error})") from error
            await asyncio.sleep(0.2)
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise BackendError(f"AUTOPOST_DATABASE_URL: {error}") from error
        else:
            return


async def prepare_streams(nats_url: str, namespace: str, access: NatsAccess) -> None:
    await asyncio.to_thread(
        importlib.import_module, "autopost_runtime.nats.streams"
    )  # takes a second, so it runs in a thread
    from autopost_contracts.subjects import Topology
    from autopost_runtime.nats.streams import BusUnavailable, ensure_streams

    try:
        await ensure_streams(nats_url, Topology(namespace), access=access)
    except BusUnavailable as error:
        raise BackendError(f"NATS at {nats_url}: {error}") from error
