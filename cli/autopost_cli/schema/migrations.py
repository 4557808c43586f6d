"""Apply the schema under `db/` to a database: forward only, with checksums, safe for concurrent runs.

All pending files are applied in one transaction under an advisory lock, so a database has either the old schema or the
new one, and concurrent runs find nothing left to do.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
from msgspec import Struct

from autopost_cli.schema import catalog, schema_files
from autopost_cli.schema.schema_files import SchemaFile

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('autopost migrations', 0))"
TABLES = "tables"
CATALOG = "catalog"
OLDEST_SERVER = 150000

Connection: TypeAlias = "asyncpg.Connection[Any]"


class MigrationError(Exception):
    """The schema cannot be applied; the message says what to do."""


class Status(Struct, frozen=True, kw_only=True):
    applied: list[str]
    pending: list[str]
    changed: list[str]
    """Tables or migrations whose files changed after they were applied, which is not allowed."""
    outdated: list[str]
    """Functions, views and grants whose text differs from what was applied."""
    drifted: bool
    """The schema was changed by hand since the last run."""

    @property
    def clean(self) -> bool:
        return not (self.pending or self.changed or self.outdated or self.drifted)


async def migrate_up(database_url: str) -> list[str]:
    """Apply pending files and return their names."""
    async with _connected(database_url) as connection, connection.transaction():
        await connection.execute("SET LOCAL search_path = public; SET LOCAL check_function_bodies = off")
        await connection.execute("SET LOCAL client_min_messages = warning; " + LOCK)
        recorded = await _recorded(connection)
        _refuse_changed(recorded)

        todo = [*_missing(recorded), *_outdated(recorded, schema_files.objects())]
        if todo or _outdated(recorded, schema_files.grants()):
            todo += schema_files.grants()
        for file in todo:
            await _apply(connection, file)

        await connection.execute("SELECT ensure_event_partitions()")
        if todo:
            await _record_all(connection, todo)
        return [file.name for file in todo]


async def migrate_status(database_url: str) -> Status:
    async with _connected(database_url) as connection:
        recorded = await _recorded(connection)
        drifted = CATALOG in recorded and recorded[CATALOG] != await catalog.digest(connection)
        return Status(
            applied=[name for name in (TABLES, *_names(schema_files.migrations())) if name in recorded],
            pending=[*([] if TABLES in recorded else [TABLES]), *_names(_pending(recorded))],
            changed=_changed(recorded),
            outdated=_names(_outdated(recorded, [*schema_files.objects(), *schema_files.grants()])),
            drifted=drifted,
        )


def _missing(recorded: dict[str, str]) -> list[SchemaFile]:
    return _pending(recorded) if TABLES in recorded else schema_files.tables()


def _pending(recorded: dict[str, str]) -> list[SchemaFile]:
    """No migration is pending if the current tables were applied: they contain all migrations."""
    if recorded.get(TABLES) == schema_files.tables_checksum():
        return []
    return [file for file in schema_files.migrations() if file.name not in recorded]


def _outdated(recorded: dict[str, str], files: list[SchemaFile]) -> list[SchemaFile]:
    return [file for file in files if recorded.get(file.name) != file.checksum]


def _names(files: list[SchemaFile]) -> list[str]:
    return [file.name for file in files]


def _changed(recorded: dict[str, str]) -> list[str]:
    return sorted(changed_migrations(recorded, schema_files.migrations()) + _tables_changed(recorded))


def changed_migrations(recorded: Mapping[str, str], files: list[SchemaFile]) -> list[str]:
    """Migrations that were applied and whose file is gone or has another text now."""
    migrations = {file.name: file.checksum for file in files}
    gone = [name for name in recorded if name.startswith("migrations/") and name not in migrations]
    edited = [name for name, checksum in migrations.items() if recorded.get(name, checksum) != checksum]
    return gone + edited


def _tables_changed(recorded: dict[str, str]) -> list[str]:
    """Before the first release tables are edited in place; after it, migrations change them."""
    current = schema_files.tables_checksum()
    same = recorded.get(TABLES, current) == current
    return [] if same or schema_files.released() else [TABLES]


def _refuse_changed(recorded: dict[str, str]) -> None:
    if changed := _changed(recorded):
        raise MigrationError(refusal(changed, released=schema_files.released()))


def refusal(changed: list[str], *, released: bool) -> str:
    names = ", ".join(changed)
    if released:
        return f"{names}: changed or removed after it was applied. Restore the file, and write a new migration instead."
    return (
        f"this database was created by another development version of autopost ({names}: changed or "
        "removed since). There is no migration between development versions: "
        "use a new, empty database (autopost up: another --data folder)."
    )


async def _apply(connection: Connection, file: SchemaFile) -> None:
    try:
        await connection.execute(file.text)
    except asyncpg.PostgresError as exc:
        raise MigrationError(f"{file.name}: {exc} (nothing was applied)") from exc


async def _record_all(connection: Connection, applied: list[SchemaFile]) -> None:
    """Written at the end, since the ledger is one of the tables."""
    for file in [*schema_files.migrations(), *(file for file in applied if not file.name.startswith("tables/"))]:
        await _record(connection, file.name, file.checksum)
    await _record(connection, TABLES, schema_files.tables_checksum())
    await _record(connection, CATALOG, await catalog.digest(connection))


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
            raise MigrationError(f"PostgreSQL 15 or newer is required; this server is version {version // 10000}")
        yield connection
    finally:
        await connection.close()
