"""The pool of connections to Postgres, and what its errors mean.

Holds no SQL but the ping. A statement that runs too long is ended by the server (``statement_timeout``), which is
a clean answer: it rolled back. Only when the server does not answer at all does ``command_timeout`` strike;
then the connection is terminated, since asking it to cancel would wait on the same dead network, and whether
the statement was committed is unknown.
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
"""Of a whole number in a JSON column; a longer one is read as text."""

R = TypeVar("R")


class Database:
    """Single statements through the pool; ``pool`` for whoever needs a transaction."""

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
        """``NotConnected`` when there is none to have: nothing was sent yet."""
        connection = self._held or await self._taken()
        try:
            yield connection
        except (TimeoutError, asyncpg.InternalClientError):  # broken: nobody else may get it
            connection.terminate()
            raise
        finally:
            if self._held is None:
                await self.pool.release(connection)

    async def _taken(self) -> "PoolConnectionProxy[asyncpg.Record]":
        try:
            return await self.pool.acquire(timeout=self._acquire_limit)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as exc:
            raise NotConnected(exc) from exc

    @asynccontextmanager
    async def on_one_connection(self) -> AsyncIterator[Self]:
        """For calls that follow each other at once: to give a connection back and take it again is four turns of the
        loop, and the server waits meanwhile. Leave after an error, when it may be broken, and while ``all_taken``, when
        others may wait for it."""
        async with self.acquire() as connection:
            twin = copy(self)
            twin._held = connection
            yield twin

    @property
    def all_taken(self) -> bool:
        return self.pool.get_idle_size() == 0 and self.pool.get_size() == self.pool.get_max_size()

    async def ping(self, statement: str = "SELECT 1") -> None:
        """A round trip outside the pool: a full pool is busy, not away, and a dead network must show. One that was good
        is good for a second, however many ask."""
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
    """Waits until the database is there, with the schema that a service needs; ``Stopping`` when the service is told to
    stop before."""
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
    """Of the service that this config is made for; what is configured must be the same."""
    [role] = [field.default for field in msgspec.structs.fields(type(config)) if field.name == "database_role"]
    return role if isinstance(role, str) else None


async def retrying(call: Callable[[], Awaitable[R]], attempts: int = 5, *, repeatable: bool = False) -> R:
    """Calls again, after a pause, what certainly did not happen.

    A call whose answer was lost may have happened, and only the caller knows whether to read back or to
    repeat: such an error is raised at once, unless ``repeatable`` says that doing it twice is harmless.
    """
    backoff = Backoff(timedelta(milliseconds=50), timedelta(seconds=2))
    for attempt in range(1, attempts + 1):
        try:
            return await call()
        except Exception as exc:
            unsure = may_have_committed(exc) and not repeatable
            if attempt == attempts or unsure or not is_retryable(exc):
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
                reset=_keep,
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
        encoder=lambda value: b"\x01" + encode(value),  # the one version of jsonb's binary format there is
        decoder=lambda raw: decode(raw[1:]),
    )
    await connection.set_type_codec("json", schema="pg_catalog", format="binary", encoder=encode, decoder=decode)


def _decoded(raw: bytes) -> Any:
    """What no reader takes must not fail the answer that it is in, and all rows beside it. A number that is too long is
    read as text; lists in lists a thousand deep stay the text that they are, which makes no sense to who asked."""
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


async def _keep(_: Any) -> None:
    """Our calls leave nothing in a session, so nothing is cleared after them: that was a round trip for each.

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
