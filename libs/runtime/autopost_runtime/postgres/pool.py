"""The pool of connections to Postgres.

It contains no SQL except the ping. The server cancels a statement that runs too long (``statement_timeout``) and rolls
it back. ``command_timeout`` applies only when the server does not respond: the connection is then terminated, because a
cancel request would wait on the same dead network, and it is unknown whether the statement was committed.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from copy import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

import asyncpg
import msgspec

from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.service import Service, Stopping
from autopost_runtime.postgres.errors import NotConnected, is_away, is_retryable, may_come_up, may_have_committed
from autopost_runtime.postgres.schema import wait_for_schema
from autopost_runtime.telemetry import metrics
from autopost_runtime.telemetry.logs import get_logger

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

__all__ = ["Database", "NotConnected", "is_away", "is_retryable", "may_have_committed", "open_database", "retrying"]

LOCK_TIMEOUT = timedelta(seconds=5)
IDLE_IN_TRANSACTION = timedelta(seconds=30)
CONNECT_TIMEOUT = timedelta(seconds=5)
PING_TIMEOUT = timedelta(seconds=1.5)
PING_HOLDS = timedelta(seconds=1)
CLOSE_TIMEOUT = timedelta(seconds=2)
IDLE_LIFETIME = timedelta(minutes=5)
MOST_DIGITS = 1000
"""For integers in JSON columns; a longer one is read as text."""

R = TypeVar("R")


class Database:
    """Runs single statements through the pool; use ``pool`` for a transaction."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", settings: dict[str, Any]) -> None:
        self.pool = pool
        self._settings = settings
        self._acquire_limit = settings["command_timeout"]
        self._held: PoolConnectionProxy[asyncpg.Record] | None = None
        self._probe: asyncpg.Connection[asyncpg.Record] | None = None
        self._probing = asyncio.Lock()
        self._pinged_at = float("-inf")

    async def fetch(self, query: str, *args: Any) -> list[asyncpg.Record]:
        async with self.acquire() as connection:
            return await connection.fetch(query, *args)

    async def fetchrow(self, query: str, *args: Any) -> asyncpg.Record | None:
        async with self.acquire() as connection:
            return await connection.fetchrow(query, *args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        async with self.acquire() as connection:
            return await connection.fetchval(query, *args)

    async def execute(self, query: str, *args: Any) -> str:
        async with self.acquire() as connection:
            return await connection.execute(query, *args)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator["PoolConnectionProxy[asyncpg.Record]"]:
        """Raises ``NotConnected`` when no connection is available; nothing was sent."""
        connection = self._held or await self._acquire()
        try:
            yield connection
        except (TimeoutError, asyncpg.InternalClientError):  # the connection is broken and must not be reused
            connection.terminate()
            raise
        finally:
            if self._held is None:
                await self.pool.release(connection)

    async def _acquire(self) -> "PoolConnectionProxy[asyncpg.Record]":
        try:
            return await self.pool.acquire(timeout=self._acquire_limit)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as exc:
            raise NotConnected(exc) from exc

    @asynccontextmanager
    async def on_one_connection(self) -> AsyncIterator[Self]:
        """For consecutive calls: releasing and acquiring a connection takes four iterations of the event loop, and the
        server waits meanwhile. Exit after an error, because the connection may be broken, and while ``all_taken``,
        because others may wait for it."""
        async with self.acquire() as connection:
            twin = copy(self)
            twin._held = connection
            yield twin

    @property
    def all_taken(self) -> bool:
        return self.pool.get_idle_size() == 0 and self.pool.get_size() == self.pool.get_max_size()

    async def ping(self, statement: str = "SELECT 1") -> None:
        """A round trip outside the pool, so that a busy pool passes and a dead network fails. A success is valid for
        one second."""
        async with self._probing:
            if time.monotonic() - self._pinged_at < PING_HOLDS.total_seconds():
                return
            try:
                if self._probe is None:
                    limits = {"timeout": PING_TIMEOUT.total_seconds(), "command_timeout": PING_TIMEOUT.total_seconds()}
                    self._probe = await asyncpg.connect(**(self._settings | limits))
                await self._probe.fetchval(statement)
            except BaseException:
                self._drop_probe()
                raise
            self._pinged_at = time.monotonic()

    def _drop_probe(self) -> None:
        if self._probe is not None:
            self._probe.terminate()
            self._probe = None

    async def close(self) -> None:
        self._drop_probe()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT.total_seconds()):
                await self.pool.close()
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            self.pool.terminate()


@asynccontextmanager
async def open_database(config: ServiceConfig, service: Service | str) -> AsyncIterator[Database]:
    """Waits for the database and the schema that the service needs. Raises ``Stopping`` when the service is stopped
    first."""
    name = service if isinstance(service, str) else service.name
    settings = _settings(config, name)
    pool = await _connect(settings, config.database_pool, None if isinstance(service, str) else service)
    database = Database(pool, settings)
    metrics.gauge("autopost_database_connections", "Connections of the pool.", lambda: _readings(pool))
    try:
        if isinstance(service, Service) and (role := _role_of(config)) is not None:
            await wait_for_schema(database, service, role)
        yield database
    finally:
        await database.close()


def _role_of(config: ServiceConfig) -> str | None:
    """The role of the service with this config; a configured role must be the same."""
    [role] = [field.default for field in msgspec.structs.fields(type(config)) if field.name == "database_role"]
    return role if isinstance(role, str) else None


async def retrying(call: Callable[[], Awaitable[R]], attempts: int = 5, *, repeatable: bool = False) -> R:
    """Retry a call that certainly had no effect, with backoff.

    A call without a response may have committed, and only the caller knows whether to read the data or to repeat.
    Such an error is raised at once, unless the call is ``repeatable``, so harmless when done twice.
    """
    backoff = Backoff(timedelta(milliseconds=50), timedelta(seconds=2))
    for attempt in range(1, attempts + 1):
        try:
            return await call()
        except Exception as exc:
            unknown = may_have_committed(exc) and not repeatable
            if attempt == attempts or unknown or not is_retryable(exc):
                raise
        await backoff.wait()
    raise ValueError("attempts must be at least 1")


async def _connect(settings: dict[str, Any], size: int, service: Service | None) -> "asyncpg.Pool[asyncpg.Record]":
    backoff = Backoff(timedelta(milliseconds=200), timedelta(seconds=5))
    while True:
        try:
            return await asyncpg.create_pool(
                **settings,
                min_size=min(size, 4),
                max_size=size,
                max_inactive_connection_lifetime=IDLE_LIFETIME.total_seconds(),
                init=_prepare,
                reset=_skip_reset,
            )
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as exc:
            if not may_come_up(exc):
                raise
            wait = backoff.next()
            get_logger().warning("database.away", error=type(exc).__name__, retry_in=wait.total_seconds())
        if service is None:
            await asyncio.sleep(wait.total_seconds())
        elif await service.sleep(wait):
            raise Stopping


def _settings(config: ServiceConfig, service: str) -> dict[str, Any]:
    limit = config.command_timeout
    server = {
        "application_name": f"autopost-{service}",
        "statement_timeout": _milliseconds(limit * 0.9),
        "lock_timeout": _milliseconds(min(LOCK_TIMEOUT, limit * 0.8)),
        "idle_in_transaction_session_timeout": _milliseconds(IDLE_IN_TRANSACTION),
        "timezone": "UTC",
        "jit": "off",
    }
    if config.database_role:
        server["role"] = config.database_role
    return {
        "dsn": config.database_url,
        "server_settings": server,
        "timeout": CONNECT_TIMEOUT.total_seconds(),
        "command_timeout": limit.total_seconds(),
    }


def _milliseconds(duration: timedelta) -> str:
    return str(max(1, round(duration.total_seconds() * 1000)))


async def _prepare(connection: Any) -> None:
    encode, decode = msgspec.json.encode, _decoded
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + encode(value),  # the only version of jsonb's binary format
        decoder=lambda raw: decode(raw[1:]),
    )
    await connection.set_type_codec("json", schema="pg_catalog", format="binary", encoder=encode, decoder=decode)


def _decoded(raw: bytes) -> Any:
    """A value that cannot be parsed must not fail the whole result. A number that is too long becomes text; JSON with
    too deep nesting stays text, which the caller rejects."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(raw, parse_int=_whole)
    except RecursionError:
        return raw.decode()


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= MOST_DIGITS else digits


async def _skip_reset(_: Any) -> None:
    """Skip the reset of the session, which costs a round trip: our calls leave no state in it.

    An open transaction is rolled back before this is called.
    """


def _readings(pool: "asyncpg.Pool[asyncpg.Record]") -> list[metrics.Observation]:
    with suppress(asyncpg.InterfaceError):
        idle = pool.get_idle_size()
        return [
            metrics.Observation(idle, {"state": "idle"}),
            metrics.Observation(pool.get_size() - idle, {"state": "busy"}),
        ]
    return []
