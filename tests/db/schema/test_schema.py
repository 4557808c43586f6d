"""The schema as a reader finds it: written once, and `schema.sql` gives all of it."""

import os
import re
from asyncio.subprocess import DEVNULL, create_subprocess_exec
from collections import Counter

import pytest
from autopost_cli.embedded.places import postgres_programs
from autopost_cli.schema import catalog, schema_files
from autopost_cli.schema.migrations import migrate_status, migrate_up

SERVICE_TABLES = {
    *(
        "retention_marks",
        "walk_cursors",
        "leader_leases",
        "relay_marks",
        "relay_state",
        "schema_ledger",
    ),
    "delivery_policy",  # of the whole installation
    "status_tokens",  # the operator's belong to no workspace
}
ACROSS_WORKSPACES = {
    "one_enabled_endpoint_per_secret": "the secret is what tells the workspace",
    "one_workspace_per_bot": "a bot's token is refused in a second one",
}


@pytest.mark.parametrize("start", [schema_files.folder(), schema_files.folder().parent])
async def test_schema_sql_loaded_by_psql_is_what_migrate_makes_and_can_be_migrated(database, empty_database, start):
    await load_by_psql(empty_database.url, start)

    applied = await migrate_up(empty_database.url)

    assert not [name for name in applied if name.startswith("tables/")]
    assert (await migrate_status(empty_database.url)).clean
    async with database.pool.acquire() as migrated, empty_database.pool.acquire() as loaded:
        assert await catalog.describe(loaded) == await catalog.describe(migrated)


async def test_schema_sql_alone_gives_all_that_migrate_does(database, empty_database):
    await load_by_psql(empty_database.url, schema_files.folder())

    async with database.pool.acquire() as migrated, empty_database.pool.acquire() as loaded:
        assert await catalog.describe(loaded) == await catalog.describe(migrated)


def test_schema_sql_includes_every_file_of_tables_in_order():
    text = (schema_files.folder() / "schema.sql").read_text()
    included = [line.split()[1] for line in text.splitlines() if line.startswith("\\i ")]

    assert included == [file.name for file in schema_files.tables()]


def test_nothing_is_created_twice():
    """A table has one definition, in `tables`; functions and views are alone in creating theirs."""
    created = [
        name
        for file in [*schema_files.tables(), *schema_files.migrations(), *schema_files.objects()]
        for name in re.findall(
            r"^CREATE (?:TABLE|TYPE|VIEW) (\w+)|^CREATE OR REPLACE (?:VIEW|FUNCTION) (\w+\([^)]*\))",
            file.text,
            re.MULTILINE,
        )
    ]

    assert [name for name, times in Counter(created).items() if times > 1] == []


def test_each_value_of_an_enum_has_a_comment_with_its_meaning():
    text = "".join(file.text for file in schema_files.tables())
    bodies = re.findall(r"^CREATE TYPE \w+ AS ENUM \(\n(.*?)^\);", text, re.MULTILINE | re.DOTALL)
    lines = [line for body in bodies for line in body.splitlines()]

    assert len(bodies) == text.count(" AS ENUM ")
    assert [line for line in lines if not re.fullmatch(r"    '\w+',? +-- .+", line)] == []


def test_a_function_lies_in_a_file_of_its_name():
    for file in schema_files.objects():
        names = set(re.findall(r"^CREATE OR REPLACE (?:FUNCTION|VIEW) (\w+)", file.text, re.MULTILINE))
        assert {file.name.rpartition("/")[2].removesuffix(".sql")} == names


def test_each_folder_of_functions_has_a_folder_of_tests():
    folders = {path.name for path in (schema_files.folder() / "functions").iterdir()}
    tested = {path.parent.name for path in (schema_files.folder().parent / "tests" / "db").glob("*/test_*.py")}

    assert folders - tested == set()


async def load_by_psql(url, folder):
    psql = postgres_programs(18, None) / "psql"
    schema = (schema_files.folder() / "schema.sql").relative_to(folder)
    process = await create_subprocess_exec(
        *(psql, "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", url, "-f", schema),
        cwd=folder,
        stdout=DEVNULL,
        env={"PATH": os.defpath},
    )
    assert await process.wait() == 0


async def test_every_key_starts_with_the_workspace(database):
    rows = await database.pool.fetch(
        """
        SELECT c.relname, a.attname
        FROM pg_constraint k
        JOIN pg_class c ON c.oid = k.conrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
        WHERE k.contype = 'p' AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
        """
    )

    others = {row["relname"] for row in rows if row["attname"] != "workspace_id"}
    assert others == SERVICE_TABLES


async def test_every_unique_index_has_the_workspace_in_it(database):
    rows = await database.pool.fetch(
        """
        SELECT c.relname AS table_name, i.relname AS index_name
        FROM pg_index x
        JOIN pg_class c ON c.oid = x.indrelid
        JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
          AND NOT EXISTS (
              SELECT 1
              FROM pg_attribute a
              WHERE a.attrelid = c.oid AND a.attname = 'workspace_id' AND a.attnum = ANY (x.indkey)
          )
        """
    )

    assert {row["table_name"] for row in rows} - SERVICE_TABLES == {"credential_bindings", "workspace_endpoints"}
    assert {row["index_name"] for row in rows if row["table_name"] not in SERVICE_TABLES} == set(ACROSS_WORKSPACES)


async def test_every_foreign_key_stays_in_its_workspace(database):
    """By the same column on both sides, so nothing can refer to what another tenant has."""
    rows = await database.pool.fetch(
        """
        SELECT k.conrelid::regclass::text AS table_name, k.conname
        FROM pg_constraint k
        WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace
          AND NOT EXISTS (
              SELECT 1
              FROM unnest(k.conkey, k.confkey) AS pair (mine, theirs)
              JOIN pg_attribute m ON m.attrelid = k.conrelid AND m.attnum = pair.mine
              JOIN pg_attribute t ON t.attrelid = k.confrelid AND t.attnum = pair.theirs
              WHERE m.attname = 'workspace_id' AND t.attname = 'workspace_id'
          )
        """
    )

    assert [tuple(row) for row in rows] == []


async def test_every_table_of_tenants_names_its_workspace(database):
    rows = await database.pool.fetch(
        """
        SELECT c.relname
        FROM pg_class c
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
          AND NOT EXISTS (
              SELECT 1
              FROM pg_attribute a
              WHERE a.attrelid = c.oid AND a.attname = 'workspace_id' AND a.attnotnull
          )
        """
    )

    assert {row["relname"] for row in rows} == SERVICE_TABLES
