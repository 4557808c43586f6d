"""A service starts only in its own role and with a schema that is new enough.

Migrations run in parallel with a rollout, so an old schema is temporary: the service waits, alive and not ready. A
session with another role is a configuration error, often with too many rights: it is refused.
"""

from datetime import timedelta
from typing import Any, Protocol

import asyncpg

from autopost_runtime.lifecycle.backoff import Backoff
from autopost_runtime.lifecycle.service import Service, Stopping
from autopost_runtime.postgres.errors import is_retryable
from autopost_runtime.telemetry.logs import get_logger

SCHEMA = 1
"""The minimum result of `schema_version()` for the services of this version. Raise both together."""


class QueryRunner(Protocol):
    async def fetchval(self, query: str, *args: Any) -> Any: ...


class WrongRole(Exception):  # noqa: N818  named for what happened
    """The session has another role than the service."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(
            f"the database session runs as {found}, expected {expected}: "
            f"ALTER ROLE <login> SET role = '{expected}', and leave AUTOPOST_DATABASE_ROLE unset"
        )


async def wait_for_schema(database: QueryRunner, service: Service, role: str) -> None:
    """Raises ``WrongRole``, or ``Stopping`` when the service is stopped first."""
    backoff = Backoff(timedelta(milliseconds=200), timedelta(seconds=5))
    while (found := await _found(database, role)) is None or found < SCHEMA:
        _report_wait(service, found)
        if await service.sleep(backoff.next()):
            raise Stopping
    service.health.forget("schema")


async def _found(database: QueryRunner, role: str) -> int | None:
    """``None`` when unknown: the database is not available, or its schema has no ``schema_version()`` yet."""
    try:
        current = str(await database.fetchval("SELECT current_user"))
        if current != role:
            raise WrongRole(current, role)
        return int(await database.fetchval("SELECT schema_version()"))
    except (asyncpg.UndefinedFunctionError, asyncpg.InsufficientPrivilegeError):
        return None
    except Exception as exc:
        if not is_retryable(exc):
            raise
        return None


def _report_wait(service: Service, found: int | None) -> None:
    get_logger().warning("schema.behind", found=found, needed=SCHEMA, advice="autopost migrate")
    service.health.check("schema", _behind)


async def _behind() -> bool:
    return False
