"""Bring a database to the schema under `db/`: forward only, checksummed, safe when several run at once.

Everything that is pending is applied in one transaction under one advisory lock, so a database is either at the
old schema or at the new one, and of three runners that start together two find nothing left to do.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
from msgspec import Struct

from autopost_cli import catalog, schema_files
from autopost_cli.schema_files import SchemaFile

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('autopost migrations', 0))"
LEDGER = """
CREATE TABLE IF NOT EXISTS schema_ledger (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON schema_ledger FROM PUBLIC;
"""
CATALOG = "catalog"
OLDEST_SERVER = 150000

Connection: TypeAlias = "asyncpg.Connection[Any]"


class MigrationError(Exception):
    """The database and the files cannot be brought together; the message says what to do."""


class Status(Struct, frozen=True, kw_only=True):
    applied: list[str]
    pending: list[str]
    changed: list[str]
    """Migrations whose file is no longer what was applied: never legal."""
    outdated: list[str]
    """Functions, views and grants whose text differs from what was applied."""
    drifted: bool
    """The catalog is not what the last run left: somebody changed the schema by hand."""

    @property
    def clean(self) -> bool:
        return not (self.pending or self.changed or self.outdated or self.drifted)


async def migrate_up(database_url: str) -> list[str]:
    """Apply what is missing; the names of what was applied."""
    async with _connected(database_url) as connection, connection.transaction():
        await connection.execute("SET LOCAL search_path = public; SET LOCAL check_function_bodies = off")
        await connection.execute(LOCK)
        await connection.execute("SET LOCAL client_min_messages = warning; " + LEDGER)
        recorded = await _recorded(connection)
        _refuse_changed(recorded)

        todo = [file for file in schema_files.migrations() if file.name not in recorded]
        todo += [file for file in schema_files.objects() if recorded.get(file.name) != file.checksum]
        if todo or any(recorded.get(file.name) != file.checksum for file in schema_files.grants()):
            todo += schema_files.grants()
        for file in todo:
            await _apply(connection, file)

        await connection.execute("SELECT ensure_event_partitions()")
        if todo:
            await _record(connection, CATALOG, await catalog.digest(connection))
        return [file.name for file in todo]


async def migrate_status(database_url: str) -> Status:
    async with _connected(database_url) as connection:
        recorded = await _recorded(connection)
        migrations = schema_files.migrations()
        current = [*schema_files.objects(), *schema_files.grants()]
        drifted = bool(recorded) and recorded.get(CATALOG) != await catalog.digest(connection)
        return Status(
            applied=[file.name for file in migrations if file.name in recorded],
            pending=[file.name for file in migrations if file.name not in recorded],
            changed=_changed(recorded),
            outdated=[file.name for file in current if recorded.get(file.name) != file.checksum],
            drifted=drifted,
        )


def _changed(recorded: dict[str, str]) -> list[str]:
    migrations = {file.name: file for file in schema_files.migrations()}
    gone = [name for name in recorded if name.startswith("migrations/") and name not in migrations]
    edited = [name for name, file in migrations.items() if recorded.get(name, file.checksum) != file.checksum]
    return sorted(gone + edited)


def _refuse_changed(recorded: dict[str, str]) -> None:
    if changed := _changed(recorded):
        raise MigrationError(
            f"{', '.join(changed)}: applied earlier with another text, or gone. "
            "A migration never changes once it was applied; put it back and write a new one."
        )


async def _apply(connection: Connection, file: SchemaFile) -> None:
    try:
        await connection.execute(file.text)
    except asyncpg.PostgresError as exc:
        raise MigrationError(f"{file.name}: {exc} (nothing was applied)") from exc
    await _record(connection, file.name, file.checksum)


async def _record(connection: Connection, name: str, checksum: str) -> None:
    await connection.execute(
        "INSERT INTO schema_ledger (name, checksum) VALUES ($1, $2) "
        "ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = clock_timestamp()",
        name,
        checksum,
    )


async def _recorded(connection: Connection) -> dict[str, str]:
    if await connection.fetchval("SELECT to_regclass('public.schema_ledger')") is None:
        return {}
    return {row["name"]: row["checksum"] for row in await connection.fetch("SELECT name, checksum FROM schema_ledger")}


@asynccontextmanager
async def _connected(database_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(
        database_url, timeout=10, server_settings={"application_name": "autopost-migrate"}
    )
    try:
        version = int(await connection.fetchval("SHOW server_version_num"))
        if version < OLDEST_SERVER:
            raise MigrationError(f"PostgreSQL 15 or newer is needed, this server is {version // 10000}")
        yield connection
    finally:
        await connection.close()
